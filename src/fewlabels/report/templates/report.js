"use strict";
/* The page is whole without this. It lets one read a value that is pointed at, tapped or reached by
   arrow keys, sort and filter rows, copy them as CSV or Markdown, and save a figure as PNG. It asks
   nobody and sends nothing. */
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
  for (const pointed of ["pointermove", "pointerdown"]) document.addEventListener(pointed, event => {
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
  const isPlot = cell => cell.matches(".plot, .wide");
  const numberOf = text => {
    const found = /^[<>]?(-?[\d,]*\.?\d+(e[-+]?\d+)?)(%|$|[ \[*])/i.exec(text);
    return found ? parseFloat(found[1].replace(/,/g, "")) : NaN;
  };

  /* What belongs together: classifiers side by side; of very many rows the best, others, worst. */
  const partsOf = table => {
    const sides = table.closest(".sides"), fold = table.nextElementSibling;
    if (sides) return all(".forest", sides);
    if (!fold || !fold.matches("details.between")) return [table];
    const last = fold.nextElementSibling;
    return [table, ...all(".forest", fold), ...(last && last.matches(".forest") ? [last] : [])];
  };
  const bodyOf = table => rowsOf(table).slice(1).filter(row => !row.matches(".all"));

  const sort = (parts, column, button) => {
    const cell = button.parentNode, down = cell.getAttribute("aria-sort") !== "descending";
    parts.forEach(part => all("[aria-sort]", part).forEach(e => e.removeAttribute("aria-sort")));
    cell.setAttribute("aria-sort", down ? "descending" : "ascending");
    const keyed = parts.flatMap(bodyOf).map(row => {
      const text = textOf(cellsOf(row)[column]);
      return { row, text, number: numberOf(text) };
    });
    const numbers = keyed.some(k => !isNaN(k.number));
    keyed.sort((a, b) => {
      if (!numbers) return (down ? -1 : 1) * a.text.localeCompare(b.text, undefined, { numeric: true });
      if (isNaN(a.number) || isNaN(b.number)) return isNaN(a.number) - isNaN(b.number);
      return (down ? -1 : 1) * (a.number - b.number);
    });
    for (const rows of parts.map(bodyOf)) {
      rows[0].parentNode.append(...keyed.splice(0, rows.length).map(k => k.row));
    }
  };
  const filter = (parts, wanted, said) => {
    const rows = parts.flatMap(bodyOf), text = wanted.trim().toLowerCase();
    const left = rows.filter(row => row.textContent.toLowerCase().includes(text));
    rows.forEach(row => row.classList.toggle("filtered", !left.includes(row)));
    if (text) left.forEach(row => { (row.closest("details") || {}).open = true; });
    said.textContent = text ? `${left.length} of ${rows.length} rows` : "";
  };

  /* A cell "0.9 [0.8, 1.0]" becomes three: whoever copies numbers wants to count with them. */
  const interval = /^(\S+) \[(\S+), (\S+)\]$/;
  const cells = parts => {
    const plots = cellsOf(rowsOf(parts[0])[0]).map(isPlot), aside = parts[0].matches(".side");
    const kept = row => cellsOf(row).map(textOf).filter((_, k) => !plots[k]);
    return parts.flatMap((part, k) => {
      const [head, ...rows] = rowsOf(part), [first, ...names] = kept(head);
      const body = rows.filter(row => !row.matches(".filtered")).map(kept);
      const lines = k ? body : [[aside ? "Group" : first, ...names], ...body];
      return aside ? lines.map((line, n) => [n || k ? first : "Classifier", ...line]) : lines;
    });
  };
  const csv = parts => {
    const [names, ...body] = cells(parts);
    const split = names.map((_, k) => body.some(row => interval.test(row[k])));
    // As in the tables that are written: a spreadsheet takes no name for a formula.
    const formula = text => /^'*[=+\-@＝＋－＠]/.test(text) && !/^'*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?%?$/i.test(text);
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
  const markdown = parts => {
    const [names, ...body] = cells(parts);
    const plain = text => interval.test(text) ? text
      : text.replace(/[\\`*\[\]<>|~&$#]|(?<![^\W_])_|_(?![^\W_])/g, "\\$&");
    const rule = names.map((_, k) => body.some(row => !isNaN(numberOf(row[k]))) ? "---:" : "---");
    const lines = [names.map(plain), rule, ...body.map(row => row.map(plain))];
    return lines.map(line => `| ${line.join(" | ")} |\n`).join("");
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
    const places = rows.map(row => Number.parseFloat(row.dataset.x));
    const slider = make("input", { type: "range", min: 0, max: 100, step: "any" });
    let at = Math.max(0, rows.findIndex(row => row.querySelector(".chip")));
    const values = heads.map(head => {
      const pair = make("div", {}), value = make("dd", {});
      pair.append(make("dt", {}, head), value);
      shown.append(pair);
      return value;
    });
    const show = () => {
      const row = rows[at], cells = cellsOf(row), texts = cells.map(textOf);
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
    /* As far along as the threshold is on the figures' scale; arrow keys go from row to row. */
    const go = to => {
      at = Math.min(Math.max(to, 0), rows.length - 1);
      slider.value = places[at];
      show();
    };
    const away = place => Math.abs(place - slider.value);
    slider.addEventListener("input", () => go(places.reduce((best, place, k) => away(place) < away(places[best]) ? k : best, 0)));
    slider.addEventListener("keydown", event => {
      const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      go(at + step);
    });
    label.append(slider);
    box.append(label, shown);
    section.querySelector(".panels").before(box);
    go(at);
  }

  /* A figure as an image: all that is seen of it is drawn once more, each word where it stands. */
  const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray",
    "stroke-linecap", "vector-effect", "opacity", "text-anchor", "font-family", "font-size", "font-weight"];
  const picture = (elements, title) => {
    const SVG = document.querySelector("svg").namespaceURI, root = document.createElementNS(SVG, "svg");
    const set = (made, attributes) => {
      for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
      return made;
    };
    const put = (tag, attributes, text) => {
      const made = set(document.createElementNS(SVG, tag), attributes);
      made.textContent = text || "";
      root.append(made);
    };
    let across = 9 * title.length, down = 52, dx = 0, dy = 0;
    const reach = (x, y) => { [across, down] = [Math.max(across, x), Math.max(down, y)]; };
    const word = (text, style, attributes) => put("text", { fill: style.color, "font-family": style.fontFamily,
      "font-size": style.fontSize, "font-weight": style.fontWeight, "dominant-baseline": "central",
      ...attributes }, text);
    const words = (node, style, clip) => {
      const range = document.createRange();
      const pieces = (pattern, text, start) => {
        for (const found of text.matchAll(pattern)) {
          range.setStart(node, start + found.index);
          range.setEnd(node, start + found.index + found[0].length);
          const [box, more] = [...range.getClientRects()].filter(box => box.width);
          if (more && pattern.source !== ".") pieces(/./gu, found[0], start + found.index);
          else if (box && box.top < clip) {
            word(found[0], style, { x: box.left + dx, y: (box.top + box.bottom) / 2 + dy });
            reach(box.right + dx, box.bottom + dy);
          }
        }
      };
      pieces(/\S+/g, node.data, 0);
    };
    const draw = (element, clip) => {
      const style = getComputedStyle(element), laid = style.display === "contents";
      if (!laid && !element.checkVisibility() || element.matches(".unseen, .tools, caption")) return;
      if (element.matches("figcaption") && title.endsWith(textOf(element))) return;
      const box = element.getBoundingClientRect();
      const x = box.left + dx, y = box.top + dy, { width, height } = box;
      if (element.namespaceURI === SVG) {
        const copy = element.cloneNode(true), from = [element, ...all("*", element)];
        [copy, ...all("*", copy)].forEach((made, k) => {
          const own = getComputedStyle(from[k]);
          STYLES.forEach(name => made.setAttribute(name, own.getPropertyValue(name)));
        });
        all("desc, .strip", copy).forEach(e => e.remove());
        root.append(set(copy, { x, y, width, height, overflow: "visible" }));
        reach(x + width, y + height);
        return;
      }
      if (!/, 0\)$/.test(style.backgroundColor)) {
        put("rect", { x, y, width, height, rx: parseFloat(style.borderRadius) || 0, fill: style.backgroundColor });
      }
      for (const [side, at] of [["Top", y], ["Bottom", y + height]]) {
        if (parseFloat(style[`border${side}Width`])) {
          put("line", { x1: x, x2: x + width, y1: at, y2: at, stroke: style[`border${side}Color`] });
        }
      }
      if (style.writingMode !== "horizontal-tb") {
        word(element.textContent.trim(), style, { "text-anchor": "middle",
          transform: `translate(${x + width / 2} ${y + height / 2}) rotate(-90)` });
        return;
      }
      const within = style.overflow === "hidden" ? Math.min(clip, box.bottom) : clip;
      for (const node of element.childNodes) {
        if (node.nodeType === 3) words(node, style, within); else if (node.nodeType === 1) draw(node, within);
      }
    };
    const page = getComputedStyle(elements[0].closest(".card") || document.body);
    word(title, page, { x: 16, y: 26, "font-size": "17px", "font-weight": 600 });
    for (const element of elements.filter(e => e.checkVisibility())) {
      const box = element.getBoundingClientRect();
      [dx, dy] = [16 - box.left, down - box.top];
      draw(element, Infinity);
      down += 16;
    }
    const about = document.querySelector(".facts .name");
    const from = [about && about.textContent, document.title].filter(Boolean).join(" · ").slice(0, 150);
    word(from, page, { x: 16, y: down + 12, "font-size": "12px", opacity: 0.7 });
    const size = { width: Math.max(across, 7 * from.length) + 16, height: down + 32 };
    return { root: set(root, size), ...size, ground: page.backgroundColor };
  };
  const save = async (elements, title) => {
    const { root, width, height, ground } = picture(elements, title), image = new Image();
    image.src = "data:image/svg+xml," + encodeURIComponent(new XMLSerializer().serializeToString(root));
    await image.decode();
    const canvas = make("canvas", {}), scale = Math.min(2, 16000 / Math.max(width, height));
    [canvas.width, canvas.height] = [width * scale, height * scale];
    const brush = canvas.getContext("2d");
    brush.fillStyle = ground;
    brush.fillRect(0, 0, canvas.width, canvas.height);
    brush.drawImage(image, 0, 0, canvas.width, canvas.height);
    const href = URL.createObjectURL(await new Promise(done => canvas.toBlob(done)));
    const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
    make("a", { href, download: `${name}.png` }).click();
    setTimeout(() => URL.revokeObjectURL(href), 60000);
  };

  /* What can be done with a table or a figure stands below it. */
  const tool = (text, done, act) => {
    const button = make("button", { type: "button", class: "copy" }, text);
    button.addEventListener("click", async () => {
      await act();
      button.textContent = done;
      setTimeout(() => { button.textContent = text; }, 2000);
    });
    return button;
  };
  const png = (elements, own) => tool("Save as PNG", "Saved", () => {
    const section = elements[0].closest(".card") || document, heading = section.querySelector("h2");
    const above = heading ? textOf(heading) : document.title, legend = section.querySelector(".legend")
      || document.querySelector(".legend.loose");
    const title = own.startsWith(above) || !own ? own || above : `${above}: ${own}`;
    return save([...elements, ...(legend ? [legend] : [])], title.slice(0, 100));
  });
  const bar = tools => {
    const made = make("div", { class: "tools" });
    made.append(...tools);
    return made;
  };

  const done = new Set();
  for (const table of all("table, .forest, .sorted")) {
    const [head] = rowsOf(table), parts = partsOf(table), body = parts.flatMap(bodyOf);
    if (done.has(table) || !head || !body.length) continue;
    if (!head.querySelector("[scope=col], [role=columnheader]")) continue;
    parts.forEach(part => done.add(part));
    const beside = table.closest(".sides"), figure = table.closest("figure");
    for (const part of parts) {
      if (body.length < 3 || table.matches(".heat")) break;
      cellsOf(rowsOf(part)[0]).forEach((cell, column) => {
        if (isPlot(cell) || !textOf(cell)) return;
        const button = make("button", { type: "button", class: "sort" });
        button.append(...cell.childNodes);
        button.addEventListener("click", () => sort(beside ? [part] : parts, column, button));
        cell.replaceChildren(button);
      });
    }
    const whole = beside || table.closest(".scroll");
    if (rowsOf(table).length > 9 && !figure) {
      const field = make("input", { type: "search", placeholder: "type to filter", "aria-label": "Filter rows" });
      const said = make("span", { role: "status" });
      field.addEventListener("input", () => filter(parts, field.value, said));
      (whole || table).before(bar([field, said]));
    }
    (whole || parts[parts.length - 1]).after(bar([
      tool("Copy as CSV", "Copied", () => copy(csv(parts))),
      tool("Copy as Markdown", "Copied", () => copy(markdown(parts))),
      ...(figure || table.matches(".forest") ? [png(figure ? [figure] : beside ? [beside] : parts,
        (table.getAttribute("aria-label") || textOf(table.caption)).replace(
          beside ? `, ${textOf(cellsOf(head)[0])}` : "", ""))] : []),
    ]));
  }
  for (const figure of all(".plots, .pair, figure")) {
    const group = figure.parentNode.closest(".plots, .pair"), caption = figure.querySelector("figcaption");
    if (group || figure.querySelector("table") || !figure.querySelector("svg")) continue;
    const fold = figure.closest("details");
    const own = figure.matches("figure") ? caption : fold && fold.querySelector("summary");
    figure.append(bar([png([figure], own ? textOf(own) : "")]));
  }
})();
