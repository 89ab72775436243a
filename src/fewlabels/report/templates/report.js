"use strict";
/* The page is whole without this. It lets one read a value that is pointed at, tapped or reached by
   arrow keys, sort a table by a column, and copy it as CSV. It asks nobody and sends nothing. */
(() => {
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const make = (tag, attributes, text) => {
    const made = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    made.textContent = text || "";
    return made;
  };

  /* Reading a value. What an element says stands in its title, which moves to data-said: the
     browser's own hint would come late, and twice. */
  const box = make("div", { class: "said", role: "status" });
  box.hidden = true;
  document.body.append(box);
  for (const title of all("svg title")) {
    const owner = title.parentNode;
    owner.dataset.said = title.textContent;
    if (owner.getAttribute("role") === "img") {
      const more = all(":scope > desc", owner).map(e => e.textContent);
      owner.setAttribute("aria-label", [title.textContent, ...more].join(". "));
    }
    title.remove();
  }
  for (const cell of all(".heat td[title]")) {
    cell.dataset.said = cell.title;
    cell.removeAttribute("title");
  }
  let keyed = null;  // what was reached by keys: it stays while the page scrolls to it
  const hide = () => { keyed = null; box.hidden = true; all(".at").forEach(e => e.classList.remove("at")); };
  const say = (element, x, y) => {
    hide();
    box.textContent = element.dataset.said;
    box.hidden = false;
    element.classList.add("at");
    const wide = box.offsetWidth, high = box.offsetHeight;
    box.style.left = Math.max(8, Math.min(x + 12, innerWidth - wide - 8)) + "px";
    box.style.top = (y - high - 14 < 8 ? y + 18 : y - high - 14) + "px";
  };
  const sayThere = element => {
    const at = element.getBoundingClientRect();
    say(element, at.left + at.width / 2, at.top + Math.min(at.height / 2, 40));
  };
  document.addEventListener("pointermove", event => {
    const element = event.target.closest("[data-said]");
    if (element) say(element, event.clientX, event.clientY); else hide();
  });
  document.addEventListener("pointerdown", event => {
    const element = event.target.closest("[data-said]");
    if (element) say(element, event.clientX, event.clientY); else hide();
  });
  const sayKeyed = element => { sayThere(element); keyed = element; };
  document.addEventListener("scroll", () => { if (keyed) sayKeyed(keyed); else hide(); }, true);
  document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });

  /* One stop of the tab key for each chart; arrow keys go from value to value within it. */
  for (const chart of all(".forest, .panel > svg[role=img], .frame > svg, .heat")) {
    const stops = () => all("[data-said]", chart);
    if (!stops().length) continue;
    chart.tabIndex = 0;
    let at = -1;
    chart.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step || event.target !== chart) return;
      event.preventDefault();
      const found = stops();
      at = at < 0 && step < 0 ? found.length - 1 : (at + step + found.length) % found.length;
      sayKeyed(found[at]);
    });
    chart.addEventListener("blur", () => { at = -1; hide(); });
  }

  /* Tables, and lists of rows that are one to who cannot see them. */
  const rowsOf = table => all("tr, [role=row]", table);
  const cellsOf = row => row.cells ? [...row.cells] : all("[role$=header], [role=cell]", row);
  const textOf = cell => {
    const copy = cell.cloneNode(true);
    all("svg, i, .unseen, .chip + .soft", copy).forEach(e => e.remove());
    all("br, .soft, .chip", copy).forEach(e => e.prepend(" "));
    return copy.textContent.replace(/\s+/g, " ").trim();
  };
  const isPlot = cell => cell.matches(".plot, .wide, .bar-cell");
  const numberOf = text => {
    const found = /^[<>]?(-?[\d,]*\.?\d+(e[-+]?\d+)?)(%|$|[ \[*])/i.exec(text);
    return found ? parseFloat(found[1].replace(/,/g, "")) : NaN;
  };

  const sort = (table, column, button) => {
    const [head, ...rows] = rowsOf(table), parent = rows[0].parentNode;
    const cell = button.parentNode, down = cell.getAttribute("aria-sort") !== "descending";
    cellsOf(head).forEach(e => e.removeAttribute("aria-sort"));
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = rows.map(row => {
      const text = textOf(cellsOf(row)[column]);
      return { row, text, number: numberOf(text) };
    });
    const numbers = keyed.some(k => !isNaN(k.number));
    keyed.sort((a, b) => {
      if (!numbers) return (down ? -1 : 1) * a.text.localeCompare(b.text);
      if (isNaN(a.number) || isNaN(b.number)) return isNaN(a.number) - isNaN(b.number);
      return (down ? -1 : 1) * (a.number - b.number);
    });
    keyed.forEach(k => parent.append(k.row));
  };

  /* A cell "0.9 [0.8, 1.0]" becomes three: whoever copies numbers wants to count with them. */
  const interval = /^(\S+) \[(\S+), (\S+)\]$/;
  const csv = table => {
    const [head, ...rows] = rowsOf(table);
    const plots = cellsOf(head).map(isPlot);
    const kept = row => cellsOf(row).map(textOf).filter((_, k) => !plots[k]);
    const body = rows.map(kept), names = kept(head);
    const split = names.map((_, k) => body.some(row => interval.test(row[k])));
    // As in the tables that are written: a spreadsheet takes no name for a formula.
    const formula = text => /^'*[=+\-@]/.test(text) && !/^'*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?$/i.test(text);
    const inert = text => formula(text) ? `'${text}` : text;
    const quoted = text => /[",\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
    const lines = [
      names.flatMap((name, k) => split[k] ? [name, `${name} low`, `${name} high`] : [name]),
      ...body.map(row => row.flatMap((text, k) => {
        const found = split[k] && interval.exec(text);
        return split[k] ? (found ? found.slice(1) : [text, "", ""]) : [text];
      })),
    ];
    return lines.map(line => line.map(inert).map(quoted).join(",") + "\n").join("");
  };
  const copy = async text => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = make("textarea", { class: "unseen" });
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
  };

  /* A slider goes through rows that stand on the figures of their section: it shows the numbers of
     one, and moves the marks there, the first figure's by the second cell, and so on. */
  for (const table of all("table")) {
    const rows = all("tr[data-x]", table), section = table.closest("section");
    if (!rows.length || !section) continue;
    const heads = cellsOf(rowsOf(table)[0]).map(textOf), plots = all(".panel > svg[role=img]", section);
    const box = make("div", { class: "slider" }), shown = make("dl", { class: "facts" });
    const label = make("label", {}, `Move the ${heads[0].toLowerCase()}`);
    const slider = make("input", { type: "range", min: 0, max: rows.length - 1 });
    const values = heads.map(head => {
      const pair = make("div", {}), value = make("dd", {});
      pair.append(make("dt", {}, head), value);
      shown.append(pair);
      return value;
    });
    const show = () => {
      const row = rows[slider.value], cells = cellsOf(row), texts = cells.map(textOf);
      values.forEach((value, k) => value.replaceChildren(...cells[k].cloneNode(true).childNodes));
      const said = heads.map((head, k) => `${head} ${texts[k]}`);
      slider.setAttribute("aria-valuetext", said.join(", "));
      plots.forEach((plot, k) => {
        const value = numberOf(texts[k + 1]);
        for (const mark of all(".drop, circle", plot)) {
          const down = plot.querySelector(".drop").getAttribute("y2") * (1 - value);
          mark.style.display = isNaN(value) ? "none" : "";
          for (const at of ["x1", "x2", "cx"]) if (mark.hasAttribute(at)) mark.setAttribute(at, row.dataset.x);
          for (const at of ["y1", "cy"]) if (mark.hasAttribute(at) && value >= 0) mark.setAttribute(at, down);
          if (mark.dataset.said) mark.dataset.said = `${said[0]}: ${said[k + 1]}`;
        }
      });
    };
    slider.value = Math.max(0, rows.findIndex(row => row.querySelector(".chip")));
    slider.addEventListener("input", show);
    label.append(slider);
    box.append(label, shown);
    section.querySelector(".panels").before(box);
    show();
  }

  for (const table of all("table, .sorted")) {
    const [head, ...rows] = rowsOf(table);
    if (!head || !rows.length || !head.querySelector("[scope=col], [role=columnheader]")) continue;
    if (rows.length > 2 && !table.matches(".heat, .bench")) {
      cellsOf(head).forEach((cell, column) => {
        if (isPlot(cell) || !textOf(cell)) return;
        const button = make("button", { type: "button", class: "sort" });
        button.append(...cell.childNodes);
        button.addEventListener("click", () => sort(table, column, button));
        cell.replaceChildren(button);
      });
    }
    const button = make("button", { type: "button", class: "copy" }, "Copy as CSV");
    button.addEventListener("click", async () => {
      await copy(csv(table));
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy as CSV"; }, 2000);
    });
    table.after(button);
  }
})();
