// The page to label in. What files say (items, classes, names) becomes text by `textContent` alone.
"use strict";

const token = document.documentElement.dataset.token;
const $ = id => document.getElementById(id);
const HIDDEN_UNTIL = 5, RETRY = 3000, POLL = 350;
const UNREACHED = "the server does not answer (is fewlabels still running?)";

let state = null;       // what the server last said
let queue = [];         // items to come, the first of which is next
let view = null;        // the item in sight
let pending = [];       // decisions that are not saved yet, in order
let sending = false, failed = false, lost = false, over = false;
let estimate = null, chosen = { model: null, metric: null }, asked = null, polling = 0;
const pictures = new Map();

// Talking to the server -------------------------------------------------------------------------

async function ask(path, body) {
  const options = { headers: { "X-Fewlabels-Token": token }, cache: "no-store" };
  if (body !== undefined) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({ error: `the server answers ${answer.status}` }));
  throw Object.assign(new Error(said.error), { status: answer.status, said });
}
const get = (path, query) => ask(`${path}?${new URLSearchParams(query || {})}`);
const json = async (path, query) => (await get(path, query)).json();

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined) element.textContent = text;
  return element;
}
const show = (element, on) => { element.hidden = !on; };
const number = n => n.toLocaleString("en");
const say = text => {
  $("saved").textContent = text;
  $("saved").classList.toggle("not", text === "not saved");
};

// Decisions -------------------------------------------------------------------------------------

function decide(label) {
  if (!view || over) return;
  if (failed) { flash(); return; }
  if (view.decided) {
    if (view.label !== label) push({ event: "change", item: view.key, class: label });
    const from = view.key;
    settled().then(() => { if (view && view.key === from) forward(); });
    return;
  }
  push(label === null ? { event: "cannot-say", item: view.key }
    : { event: "label", item: view.key, class: label });
  queue = queue.filter(item => item.key !== view.key);
  next();
}

function push(event) {
  pending.push(event);
  say("saving…");
  send();
}

async function send() {
  if (sending) return;
  sending = true;
  while (pending.length) {
    const event = pending[0];
    try {
      const answer = await (await ask("/event", event)).json();
      pending.shift();
      failed = false;
      show($("alert"), false);
      take(answer);
      if (event.event === "undo" && answer.undone) returned(answer.undone);
      if (event.event === "note" && view && view.key === event.item) open(await item(view.key));
      if (!pending.length) say(event.event === "undo" ? "undone, saved" : "saved");
      watch();
    } catch (error) {
      if (error.status === 409 || error.status === 400) {
        pending.shift();
        if (error.said.queue) take(error.said);
        say(error.message);
        if (view && !view.decided && !queue.some(item => item.key === view.key)) next();
        continue;
      }
      failed = true;
      alarm(`Not saved: ${error.status ? error.message : UNREACHED}.`, error.said);
      setTimeout(() => { if (failed) send(); }, RETRY);
      break;
    }
  }
  sending = false;
  waiters.splice(0).forEach(go => go());
}

const waiters = [];
const settled = () => (sending || pending.length) && !failed
  ? new Promise(go => waiters.push(go)) : Promise.resolve();

function take(said) {
  const unsaved = new Set(pending.map(event => event.item));
  state = Object.assign(state || {}, said);
  queue = said.queue.filter(item => !unsaved.has(item.key));
  counted();
  if (!view && !over) next();
  preload();
}

function alarm(text, said) {
  const n = pending.length;
  lost = Boolean(said && said.lost);
  const kept = n ? ` ${n === 1 ? "One decision waits" : `${n} decisions wait`} on this page;`
    + ` do not close it. ${lost ? "Download the labels to be safe: fewlabels has them in memory."
      : "Nothing that was said to be saved is lost."}` : "";
  $("alert-text").textContent = text + kept;
  show($("rescue"), lost);
  if (n && !view) $("where").textContent = "The last decision waits to be saved";
  show($("alert"), true);
  say(n ? "not saved" : "");
}

// What was saved, as a record, where the file that it was in is gone.
async function rescue() {
  const link = make("a"), url = URL.createObjectURL(await (await get("/rescue")).blob());
  link.href = url;
  link.download = state.record.split(/[\\/]/).pop();
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}
function flash() { $("retry").focus(); }

function undo() {
  if (failed) { flash(); return; }
  if (!pending.length && state.undo === null) { say("there is nothing to undo"); return; }
  push({ event: "undo", item: pending.length ? "" : state.undo });
}

function returned(item) {
  queue = queue.filter(other => other.key !== item.key);
  if (!item.decided) queue.unshift(item);
  open(item);
}

async function go(step) {
  if (over || failed) return;
  await settled();
  const from = view && view.decided ? view.key : "";
  const found = await json("/neighbour", from ? { key: from, step } : { step });
  if (found) open(found);
  else if (step > 0 && from) next();
  else if (step < 0) say("this is the first one");
}
const forward = () => view && view.decided ? go(1) : say("this is the item to label");

const item = key => json("/item", { key });

// The item in sight -------------------------------------------------------------------------------

function next() {
  view = queue[0] || null;
  if (view) { open(view); return; }
  $("cells").replaceChildren();
  show($("decide"), false);
  show($("state"), false);
  $("where").textContent = state && !pending.length && state.left <= 0
    ? "Every item has a label, or nobody could say" : "The next item is being drawn";
  if (state && !pending.length && state.left > 0) setTimeout(again, POLL);
}

async function again() {
  if (!view && !pending.length && !over) take(await json("/state"));
}

function open(found) {
  view = found;
  const done = state.labeled + state.cannot_say;
  const unsaved = pending.filter(e => ["label", "cannot-say"].includes(e.event)).length;
  $("where").textContent = found.decided ? `Item ${found.key}` : `Item ${number(done + unsaved + 1)}`;
  show($("state"), found.decided);
  $("state").textContent = found.label === null ? "cannot say" : `labeled ${found.label}`;
  $("cells").replaceChildren(...found.cells.map(cell => cellOf(found, cell)));
  $("cells").dataset.columns = found.cells.length;
  $("answers").replaceChildren(...found.answers.map(([model, said]) => {
    const line = make("li");
    line.append(make("span", "soft", `${model} `), make("b", "", said));
    return line;
  }));
  show($("answers"), found.answers.length > 0);
  $("notes").replaceChildren(...found.notes.map(text => make("li", "", text)));
  show($("notes"), found.notes.length > 0);
  show($("decide"), true);
  for (const button of $("classes").children) {
    const on = found.decided && button.dataset.label === found.label;
    button.setAttribute("aria-pressed", on);
  }
  $("cannot-say").setAttribute("aria-pressed", found.decided && found.label === null);
  shut();
  scrollTo(0, 0);
  if (!document.querySelector("dialog[open]")) $("where").focus({ preventScroll: true });
}

function cellOf(found, cell) {
  const box = make("section", "cell card");
  if (found.cells.length > 1) box.append(make("h2", "column", cell.column));
  if (cell.kind === "image") {
    const image = make("img");
    image.alt = `${cell.column}: ${cell.text}`;
    picture(found.key, cell.column).then(
      url => { image.src = url; },
      () => image.replaceWith(make("p", "soft", `There is no picture ${cell.text} in the folder.`)));
    box.append(image);
  } else {
    const text = make("div", "text");
    text.dir = "auto";
    if (state.markdown) text.append(...paragraphs(cell.text));
    else { text.classList.add("plain"); text.textContent = cell.text; }
    if (!cell.text.trim()) text.append(make("span", "soft", "(empty)"));
    box.append(text);
  }
  return box;
}

function picture(key, column) {
  const name = `${key}\n${column}`;
  if (!pictures.has(name)) {
    if (pictures.size > 24) {
      const [oldest, url] = pictures.entries().next().value;
      pictures.delete(oldest);
      url.then(URL.revokeObjectURL, () => {});
    }
    pictures.set(name, get("/image", { key, column })
      .then(answer => answer.blob()).then(blob => URL.createObjectURL(blob)));
  }
  return pictures.get(name);
}

function preload() {
  for (const item of queue)
    for (const cell of item.cells)
      if (cell.kind === "image") picture(item.key, cell.column).catch(() => {});
}

// Paragraphs, headings, lists, quotes and code by their usual marks; whatever else stays as it is.
function paragraphs(text) {
  const out = [];
  const blocks = text.replace(/\r\n?/g, "\n").split(/\n(?:[ \t]*\n)+/);
  for (let k = 0; k < blocks.length; k++) {
    let block = blocks[k];
    if (/^```/.test(block)) {
      while (!/\n```\s*$/.test(block) && k + 1 < blocks.length) block += `\n\n${blocks[++k]}`;
      out.push(make("pre", "", block.replace(/^```.*\n?/, "").replace(/\n?```\s*$/, "")));
      continue;
    }
    const heading = /^(#{1,6})\s+(.+)$/.exec(block);
    const lines = block.split("\n");
    if (heading) out.push(spans(make("p", "heading"), heading[2]));
    else if (lines.every(line => /^\s*([-*+]|\d+[.)])\s/.test(line))) {
      const list = make(/^\s*\d/.test(block) ? "ol" : "ul");
      for (const line of lines)
        list.append(spans(make("li"), line.replace(/^\s*([-*+]|\d+[.)])\s+/, "")));
      out.push(list);
    } else if (lines.every(line => /^>/.test(line)))
      out.push(spans(make("blockquote"), lines.map(line => line.replace(/^> ?/, "")).join("\n")));
    else if (block.trim()) out.push(spans(make("p"), block));
  }
  return out;
}

function spans(element, text) {
  for (const part of text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/)) {
    if (/^`.+`$/.test(part)) element.append(make("code", "", part.slice(1, -1)));
    else if (/^\*\*.+\*\*$/.test(part)) element.append(make("b", "", part.slice(2, -2)));
    else element.append(part);
  }
  return element;
}

// Progress and last decisions ---------------------------------------------------------------------

function counted() {
  const more = state.cannot_say ? `, ${number(state.cannot_say)} cannot say` : "";
  const known = state.known ? `, ${number(state.known)} in the file` : "";
  $("progress").textContent = `${number(state.labeled)} labeled${more}${known}`
    + ` · ${number(state.items)} items`;
  show($("notice"), Boolean(state.notice));
  $("notice").textContent = state.notice || "";
  document.title = `${state.labeled} labeled - ${state.name}`;
  show($("recent-none"), !state.recent.length);
  $("recent").replaceChildren(...state.recent.map(one => {
    const line = make("li"), button = make("button", "quiet");
    button.type = "button";
    button.append(make("span", "n", one.number), make("b", "", one.label === null ? "cannot say" : one.label),
      make("span", "soft", one.text || one.key));
    button.addEventListener("click", async () => { if (!failed) { await settled(); open(await item(one.key)); } });
    line.append(button);
    return line;
  }));
  shownOrNot();
}

// The estimate --------------------------------------------------------------------------------------

const remembered = (name, value) => {
  try {
    if (value === undefined) return sessionStorage.getItem(name);
    sessionStorage.setItem(name, value);
  } catch { /* a frame of another site may keep nothing */ }
  return null;
};

function shownOrNot() {
  const wish = remembered("shown");
  const enough = state.labeled + state.known >= HIDDEN_UNTIL;
  const on = wish === null ? enough : wish === "yes";
  $("shown").checked = on;
  const there = estimate && estimate.rows.length > 0;
  show($("estimated"), on && there);
  const left = HIDDEN_UNTIL - state.labeled - state.known;
  const text = on ? (estimate && estimate.problem) || (there ? "" : "being computed…")
    : wish === "no" ? "Hidden, so that it does not sway you."
      : `Hidden until there are ${HIDDEN_UNTIL} labels (${left} to go), so that it does not sway you.`;
  $("waiting").textContent = text;
  show($("waiting"), text !== "");
  const stops = estimate ? estimate.stops : [];
  show($("stop"), stops.length > 0);
  const can = estimate && estimate.can_stop;
  $("stop").classList.toggle("can", Boolean(can));
  const words = can ? `You can stop: ${stops.map(s => s.why).join("; ")}.`
    : stops.map(s => s.met ? `Done: ${s.why}.` : s.labels === null ? `Go on until ${s.goal}.`
      : `Go on until ${s.goal}: about ${number(s.labels)} more labels.`).join(" ");
  if ($("stop").textContent !== words) $("stop").textContent = words;
  return on && there;
}

async function watch() {
  const mine = ++polling;
  for (;;) {
    let found;
    try { found = await json("/estimate"); } catch { return; }
    if (mine !== polling) return;
    if (found) { estimate = found; estimated(); }
    if (found && found.fresh) return;
    await new Promise(go => setTimeout(go, POLL));
    if (mine !== polling) return;
  }
}

function estimated() {
  if (!estimate.rows.some(r => r.metric === chosen.metric)) chosen.metric = state.metrics[0];
  const rows = estimate.rows.filter(row => row.metric === chosen.metric);
  if (!rows.some(row => row.model === chosen.model)) chosen.model = rows.length ? rows[0].model : null;
  const on = shownOrNot();
  if (!rows.length) return;
  const digits = v => v === null ? "-" : v.toFixed(Math.abs(v) >= 100 ? 1 : 3);
  const ends = rows.flatMap(r => [r.low, r.high, r.value]).filter(v => v !== null);
  const low = Math.min(...ends), width = Math.max(...ends) - low || 1;
  const at = v => `${(4 + 92 * (v - low) / width).toFixed(2)}%`;
  const kept = document.activeElement && document.activeElement.dataset.model;
  $("rows").replaceChildren(...rows.map(row => {
    const button = make("button", "estimate-row");
    button.type = "button";
    button.dataset.model = row.model;
    button.setAttribute("aria-pressed", row.model === chosen.model);
    button.append(make("span", "name", row.model), make("b", "figure", digits(row.value)));
    if (row.low !== null) {
      button.append(drawn("svg", { class: "bar", "aria-hidden": "true" },
        drawn("line", { class: "span", x1: at(row.low), x2: at(row.high), y1: "50%", y2: "50%" }),
        drawn("circle", { class: "dot", cx: at(row.value), cy: "50%", r: 4.5 })));
      button.append(make("span", "ends soft", `${digits(row.low)} to ${digits(row.high)}`));
    }
    if (row.status !== "ok") {
      const chip = make("span", `chip ${row.status}`, row.status);
      chip.title = row.message;
      button.append(chip);
    }
    button.addEventListener("click", () => { chosen.model = row.model; estimated(); });
    return button;
  }));
  if (kept !== undefined)
    for (const button of $("rows").children) if (button.dataset.model === kept) button.focus();
  const row = rows.find(r => r.model === chosen.model);
  $("figure-title").textContent = `${row.metric} of ${row.model} after ${number(estimate.n)} labels`;
  $("level").textContent = `${+(100 * estimate.level).toFixed(4)}% interval`;
  show($("guard-legend"), row.guard_low !== null);
  $("forecast").textContent = row.labels_to_width === null || estimate.stops.length ? ""
    : row.labels_to_width === 0 ? "This interval is narrower than 0.1."
      : `About ${number(row.labels_to_width)} more labels make this interval 0.1 wide.`;
  if (on) figure();
}

async function figure() {
  const wanted = `${chosen.model}\n${chosen.metric}\n${estimate.n}\n${estimate.moments}\n${state.version}`;
  if (wanted === asked) return;
  asked = wanted;
  try {
    const text = await (await get("/picture", chosen)).text();
    const image = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
    if (asked === wanted && harmless(image)) $("figure").replaceChildren(document.adoptNode(image));
  } catch { asked = null; }
}

// The server escapes every name; this is the second lock.
const SHAPES = new Set(["svg", "g", "title", "desc", "text", "tspan", "line", "path", "rect", "circle"]);
const harmless = image => [image, ...image.querySelectorAll("*")].every(
  e => SHAPES.has(e.nodeName) && [...e.attributes].every(a => !/^on|href/i.test(a.name)));

function drawn(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// Keys ------------------------------------------------------------------------------------------------

const keys = new Map();

function begin() {
  $("file").textContent = state.name.split(/[\\/]/).pop();
  $("file").title = state.name;
  $("record").textContent = state.record;
  for (const one of state.classes) {
    const button = make("button", "class");
    button.type = "button";
    button.dataset.label = one.name;
    button.setAttribute("aria-pressed", "false");
    if (one.keys.length) button.setAttribute("aria-keyshortcuts", one.keys.join(" "));
    for (const key of one.keys) {
      if (key !== one.name) button.append(make("kbd", "", key));
      keys.set(key, () => decide(one.name));
    }
    button.append(make("span", "name", one.name));
    button.addEventListener("click", () => decide(one.name));
    $("classes").append(button);
  }
  $("classes").classList.toggle("many", state.classes.length > 4);
  const rest = { s: () => decide(null), u: undo, n: note, "?": help, ArrowLeft: () => go(-1), ArrowRight: forward };
  for (const [key, act] of Object.entries(rest)) keys.set(key, act);
  for (const [id, act] of [["cannot-say", () => decide(null)], ["undo", undo], ["back", () => go(-1)],
    ["forward", forward], ["note-button", note], ["help-button", help], ["retry", send],
    ["rescue", () => rescue().catch(error => say(error.message))]])
    $(id).addEventListener("click", act);
  const told = [...state.classes.map(c => [c.keys.join(" or ") || "click", c.name]), ["s", "cannot say"],
    ["u", "undo the last decision or change"], ["← →", "back to what was decided, and forward"],
    ["n", "note something of the item"], ["?", "this list"]];
  for (const [key, what] of told) {
    const term = make("dt");
    term.append(make("kbd", "", key));
    $("keys").append(term, make("dd", "", what));
  }
  for (const metric of state.metrics) $("metric").append(new Option(metric, metric));
  show($("metric-row"), state.metrics.length > 1);
  $("metric").addEventListener("change", () => { chosen.metric = $("metric").value; estimated(); });
  $("shown").addEventListener("change", () => {
    remembered("shown", $("shown").checked ? "yes" : "no");
    if (estimate) estimated(); else shownOrNot();
  });
  $("finish").addEventListener("click", finish);
  $("note-form").addEventListener("submit", event => {
    event.preventDefault();
    const text = $("note").value.trim();
    if (text && view) push({ event: "note", item: view.key, text });
    shut();
  });
  document.addEventListener("keydown", pressed);
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.key === "Escape") { shut(); return; }
  if ($("help").open) {
    if (event.key === "?") { $("help").close(); event.preventDefault(); }
    return;
  }
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
  const act = keys.get(event.key) || keys.get(event.key.toLowerCase());
  if (!act) return;
  event.preventDefault();
  // A key that is held down is one decision.
  if (!event.repeat) act();
}

function note() {
  if (!view) return;
  if (!$("note-form").hidden) { shut(); return; }
  show($("note-form"), true);
  $("note-button").setAttribute("aria-expanded", "true");
  $("note").focus();
}
function shut() {
  show($("note-form"), false);
  $("note").value = "";
  $("note-button").setAttribute("aria-expanded", "false");
  if (document.activeElement === $("note")) $("where").focus({ preventScroll: true });
}
function help() { $("help").showModal(); }

async function finish() {
  if (failed) await send();
  await settled();
  if (failed && !lost) { flash(); return; }
  let ended;
  try { ended = await (await ask("/finish", {})).json(); } catch { return; }
  const unsaved = pending.length ? " The decision that waited was not saved." : "";
  over = true;
  failed = false;
  pending = [];
  view = null;
  $("cells").replaceChildren();
  show($("decide"), false);
  show($("state"), false);
  $("where").textContent = "Finished. You can close this page.";
  if (ended.saved && !unsaved) say("saved");
  else { alarm(`${ended.where}.${unsaved}`); show($("retry"), false); }
  $("where").focus();
}

// Beginning -------------------------------------------------------------------------------------------

async function load() {
  try {
    const found = await json("/state");
    const first = state === null;
    state = found;
    if (first) begin();
    view = null;
    take(found);
    watch();
  } catch (error) {
    alarm(`${error.status ? error.message : UNREACHED}.`);
    $("retry").addEventListener("click", load, { once: true });
  }
}

addEventListener("beforeunload", event => { if (pending.length) event.preventDefault(); });
// What the browser kept of a page that was left may be old.
addEventListener("pageshow", event => { if (event.persisted) load(); });
load();
