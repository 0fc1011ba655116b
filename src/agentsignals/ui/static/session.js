"use strict";
// The session page: parts of a long conversation come as they are scrolled to and go when they are far; keys and links
// jump to any entry. Without this script the page has links to its parts.
(() => {
  const timeline = document.querySelector(".timeline");
  const first = timeline && timeline.querySelector(".part");
  if (!first) return;
  const base = timeline.dataset.base;
  let last = Number(timeline.dataset.last);
  const filter = new URLSearchParams(timeline.dataset.query.slice(1));
  const parts = [];
  const waiting = new Map();
  let marks = null;

  // -- parts ----------------------------------------------------------------------------------------------------------

  const number = (part) => Number(part.dataset.part);
  const isThere = (part) => !part.classList.contains("waiting");
  const guess = () => {
    const there = parts.filter(isThere);
    const pixels = there.reduce((sum, part) => sum + part.offsetHeight, 0);
    return Math.max(400, Math.round(pixels / Math.max(there.length, 1)));
  };
  const empty = (part, height) => {
    if (number(part) === last && isThere(part) && part.hasChildNodes()) return;  // what comes in live stands there
    part.replaceChildren();
    part.classList.add("waiting");
    part.style.height = `${height}px`;
  };
  const fragment = async (path, fields) => {
    const query = new URLSearchParams(filter);
    for (const [name, value] of Object.entries(fields)) query.set(name, value);
    const reply = await fetch(`${base}/${path}?${query}`);
    if (!reply.ok) throw new Error(`${reply.status}`);
    return new DOMParser().parseFromString(await reply.text(), "text/html");
  };
  const put = (made) => {
    const part = parts[number(made)];
    if (!isThere(part)) {
      part.replaceChildren(...made.childNodes);
      part.classList.remove("waiting");
      part.style.height = "";
      if (made.dataset.liveRegion) part.dataset.liveRegion = made.dataset.liveRegion;
    }
    return part;
  };
  const load = (n) => {
    if (!waiting.has(n)) {
      const coming = fragment("part", { page: n + 1 })
        .then((page) => put(page.querySelector(".part")))
        .then((part) => { follow(); return part; })
        .finally(() => waiting.delete(n));
      waiting.set(n, coming);
    }
    return waiting.get(n);
  };

  const near = new Set();
  let timer = 0;
  const settle = () => {
    timer = 0;
    for (const part of near) if (!isThere(part)) load(number(part)).catch(() => {});
  };
  const begin = () => {
    const here = number(first);
    const height = Math.max(400, first.offsetHeight);
    for (let n = 0; n <= last; n += 1) {
      if (n === here) {
        parts.push(first);
        continue;
      }
      const part = document.createElement("div");
      part.className = "part waiting";
      part.dataset.part = n;
      part.style.height = `${height}px`;
      parts.push(part);
    }
    const kept = document.documentElement.scrollTop - first.offsetTop;
    first.before(...parts.slice(0, here));
    first.after(...parts.slice(here + 1));
    timeline.classList.add("scrolls");
    const target = document.getElementById(location.hash ? location.hash.slice(1) : `e${timeline.dataset.at}`);
    if (target && timeline.contains(target)) show(target);
    else if (here > 0) document.documentElement.scrollTop = first.offsetTop + Math.max(kept, 0);
    for (const part of parts) look(part);
    live();
  };
  const coming = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting) near.add(target);
      else near.delete(target);
    }
    if (!timer) timer = setTimeout(settle, 60);
  }, { rootMargin: "1500px 0px" });
  const going = new IntersectionObserver((seen) => {
    for (const { target, isIntersecting } of seen) {
      if (isIntersecting || !isThere(target) || target.contains(document.activeElement)) continue;
      empty(target, target.offsetHeight);
    }
  }, { rootMargin: "9000px 0px" });
  const look = (part) => {
    coming.observe(part);
    going.observe(part);
  };

  // -- a session that goes on (watching.js) -----------------------------------------------------------------------------

  const live = () => {
    const query = new URLSearchParams(filter);
    query.set("page", last + 1);
    document.getElementById("main").dataset.liveAddress = `${base}?${query}`;
    setTimeout(() => load(last).catch(() => {}), 500);
  };
  const grow = async () => {
    marks = null;
    const page = await fragment("part", { page: last + 2 });
    const now = Number(page.querySelector(".part").dataset.last);
    if (now <= last) return;
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
    const full = parts[last];
    delete full.dataset.liveRegion;
    for (let n = last + 1; n <= now; n += 1) {
      const part = document.createElement("div");
      part.dataset.part = n;
      part.className = "part waiting";
      part.style.height = `${guess()}px`;
      parts[n - 1].after(part);
      parts.push(part);
      look(part);
    }
    last = now;
    live();
    const whole = (await fragment("part", { page: number(full) + 1 })).querySelector(".part");
    if (isThere(full)) full.append(...[...whole.children].filter((entry) => !document.getElementById(entry.id)));
    if (!atEnd) {
      document.dispatchEvent(new CustomEvent("live:more", { detail: parts[last] }));  // watching.js says it
      return;
    }
    await load(last);
    scrollTo({ top: document.documentElement.scrollHeight });
  };
  document.addEventListener("live:changed", () => grow().catch(() => {}));

  // -- where the reader is --------------------------------------------------------------------------------------------

  const entries = () => [...timeline.querySelectorAll(".entry, details.thread[id]")].filter((e) => e.offsetParent !== null);
  const seqOf = (element) => Number(element.id.slice(1));
  const current = () => {
    const focused = document.activeElement && document.activeElement.closest(".timeline .entry, .timeline details.thread");
    if (focused && focused.id) {
      const box = focused.getBoundingClientRect();
      if (box.bottom > 0 && box.top < innerHeight) return focused;
    }
    return entries().find((entry) => entry.getBoundingClientRect().bottom > 90) || null;
  };
  const show = (element) => {
    for (let up = element; up; up = up.parentElement) if (up.tagName === "DETAILS" && up !== element) up.open = true;
    if (element.matches("details.result")) element.open = true;
    const target = element.closest(".entry") || element;
    target.scrollIntoView({ block: "start" });
    if (target.tabIndex < 0 || target.hasAttribute("tabindex")) target.focus({ preventScroll: true });
    else target.querySelector("summary")?.focus({ preventScroll: true });
  };
  const go = async (seq) => {
    let target = document.getElementById(`e${seq}`);
    if (!target) {
      const page = await fragment("part", { at: seq });
      const made = page.querySelector(".part");
      const part = parts[number(made)];
      if (isThere(part)) part.replaceChildren(...made.childNodes);
      else put(made);
      target = document.getElementById(`e${seq}`) || part.querySelector(".entry");
      if (!target) return;
      show(target);
      await load(Math.max(number(part) - 1, 0)).catch(() => {});  // what comes in above moves what is shown
      if (!(target.closest(".entry") || target).contains(document.activeElement)) return;  // the reader is elsewhere by now
    }
    for (const entry of timeline.querySelectorAll(".here")) entry.classList.remove("here");
    show(target);
    const query = new URLSearchParams(filter);
    query.set("at", seq);
    history.replaceState(null, "", `?${query}#e${seq}`);
  };
  const step = async (way) => {
    const shown = entries();
    const at = current();
    const place = shown.indexOf(at);
    const focused = document.activeElement === at || (at && at.contains(document.activeElement));
    const next = shown[focused ? place + way : place];
    if (next && (!at || Math.abs(number(next.closest(".part")) - number(at.closest(".part"))) <= 1)) return show(next);
    const part = at && parts[number(at.closest(".part")) + way];
    if (!part) return undefined;
    await load(number(part));
    const come = [...part.querySelectorAll(".entry, details.thread[id]")];
    return come.length ? show(way > 0 ? come[0] : come[come.length - 1]) : undefined;
  };

  let moved = Promise.resolve();
  const then = (move, failed = () => say("Loading failed. Try again.")) => {  // each begins where the one before it ended
    moved = moved.then(move).catch(failed);
  };

  // -- jumps ----------------------------------------------------------------------------------------------------------

  const jump = async (kind, way) => {
    marks = marks || (await (await fetch(`${base}/marks`)).json());
    const at = current();
    const seq = at ? seqOf(at) : -1;
    const list = marks[kind] || [];
    const next = way > 0 ? list.find((mark) => mark > seq) : list.findLast((mark) => mark < seq);
    if (next !== undefined) await go(next);
    else say(`No ${kind.slice(0, -1)} ${way > 0 ? "after" : "before"} this one.`);
  };
  const say = (text) => {
    const tip = document.getElementById("tip");
    tip.textContent = text;
    tip.hidden = false;
    clearTimeout(say.timer);
    say.timer = setTimeout(() => { tip.hidden = true; }, 1800);
  };
  for (const button of document.querySelectorAll(".jump button")) {
    button.hidden = false;
    button.addEventListener("click", () => then(() => jump(button.parentElement.dataset.kind, Number(button.dataset.way))));
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const href = link.getAttribute("href");
    const at = /^\?(.*&)?at=(\d+)(&.*)?#e/.exec(href);
    const query = new URLSearchParams(href.split("#")[0].slice(1));
    const same = ["only", "thread", "q"].every((name) => (query.get(name) || "") === (filter.get(name) || ""));
    if (at && same) {
      event.preventDefault();
      then(() => go(Number(at[2])), () => { location.href = href; });
    } else if (link.closest(".outline") && link.dataset.turn) {
      event.preventDefault();
      outline(Number(link.dataset.turn));
    }
  });
  timeline.addEventListener("toggle", async (event) => {
    const thread = event.target;
    if (thread.matches("details.pictured") && thread.open && !thread.querySelector("img")) {
      const come = await fragment(`image/${thread.dataset.seq}`, {});
      thread.querySelector("summary").after(...come.body.childNodes);
    }
    const inside = thread.matches("details.thread") && thread.open && thread.querySelector(":scope > .inside");
    if (!inside || inside.children.length) return;
    const page = await fragment("part", { thread: thread.dataset.thread, only: "" });
    inside.replaceChildren(...page.querySelector(".part").childNodes);
  }, true);

  // -- outline --------------------------------------------------------------------------------------------------------

  const panel = document.querySelector(".outline .window");
  let asked = -1;
  const outline = async (turn) => {
    asked = turn;
    const page = await fragment("turns", { turn });
    if (asked !== turn) return;
    asked = -1;
    panel.replaceChildren(...page.body.childNodes);
    if (panel.querySelector("a[rel=next]")) delete panel.dataset.liveRegion;
    else panel.dataset.liveRegion = "outline";
  };
  let frame = 0;
  const follow = () => {
    frame = 0;
    const prompts = [...timeline.querySelectorAll(".entry.human_turn h3[data-turn]")];
    const passed = prompts.filter((h) => h.getBoundingClientRect().top < 140);
    const heading = passed[passed.length - 1];
    if (!heading) return;
    const turn = Number(heading.dataset.turn);
    const list = panel.querySelector(".turns");
    const low = Number(list.dataset.low);
    if ((turn < low || turn >= low + Number(list.dataset.step)) && asked !== turn) {
      outline(turn).then(follow);
      return;
    }
    const item = list.querySelector(`[data-turn="${turn}"]`);
    if (!item || item.classList.contains("now")) return;
    for (const old of list.querySelectorAll(".now")) old.classList.remove("now");
    item.classList.add("now");
    const box = item.offsetTop - panel.offsetTop;
    if (box < panel.scrollTop || box > panel.scrollTop + panel.clientHeight - 60) panel.scrollTop = box - panel.clientHeight / 3;
  };
  addEventListener("scroll", () => { frame = frame || requestAnimationFrame(follow); }, { passive: true });

  // -- keys -----------------------------------------------------------------------------------------------------------

  const help = document.getElementById("help");
  const moves = {
    j: () => step(1), k: () => step(-1),
    n: () => jump("prompts", 1), p: () => jump("prompts", -1), J: () => jump("prompts", 1), K: () => jump("prompts", -1),
    f: () => jump("failures", 1), F: () => jump("failures", -1),
    e: () => jump("edits", 1), E: () => jump("edits", -1),
  };
  const keys = {
    o: () => (panel.querySelector(".now a") || panel.querySelector("a"))?.focus(),
    x: () => { const folds = current()?.querySelectorAll("details") || []; for (const fold of folds) fold.open = !fold.open; },
    "/": () => { document.querySelector(".which").open = true; document.getElementById("within").select(); },
    "?": () => (help.open ? help.close() : help.showModal()),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, [contenteditable]")) return;
    if (help.open && event.key !== "?") return;
    const [move, act] = [moves[event.key], keys[event.key]];
    if (!move && !act) return;
    event.preventDefault();
    if (move) then(move);
    else act();
  });
  const button = document.getElementById("keys");
  button.hidden = false;
  button.addEventListener("click", keys["?"]);

  if (matchMedia("(max-width: 54rem)").matches) for (const fold of document.querySelectorAll(".outline details, .which")) fold.open = false;
  begin();
  follow();
})();
