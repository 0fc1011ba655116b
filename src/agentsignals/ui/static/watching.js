"use strict";
// Keeps an open page as the store is. The server says which sessions changed (`/live`); a page of one of them takes its
// marked regions (data-live-region) from the page as it is now (at data-live-address, or its own), any other page offers
// to be shown anew. A page's own script hears of it afterwards: "live:changed" with the news, "live:added" with the
// elements that are new.
(() => {
  const main = document.getElementById("main");
  const session = (main.dataset.live || "").replace(/^session:/, "");
  const RETRY_MS = 60_000;
  const AT_END_PX = 120;
  let state = main.dataset.liveState;
  if (!state) return;  // a page of no store: what went wrong stands on it

  const place = document.createElement("div");
  place.id = "watching";
  place.setAttribute("role", "status");
  document.body.append(place);
  const line = (kind) => {
    let made = place.querySelector(`[data-kind="${kind}"]`);
    if (!made) {
      made = document.createElement(kind === "problem" ? "p" : "button");
      made.dataset.kind = kind;
      place.append(made);
    }
    return made;
  };
  const gone = (kind) => place.querySelector(`[data-kind="${kind}"]`)?.remove();
  const tell = (name, detail) => document.dispatchEvent(new CustomEvent(name, { detail }));
  const plural = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

  // -- what the server says -------------------------------------------------------------------------------------

  let source = null;
  let again = 0;
  function listen() {
    if (source || document.hidden) return;
    clearTimeout(again);
    source = new EventSource("/live");
    source.addEventListener("hello", (event) => {
      const hello = JSON.parse(event.data);
      problem(hello);
      if (hello.state !== state) changed({ state: hello.state, n: 0, sessions: null });
    });
    source.addEventListener("changed", (event) => changed(JSON.parse(event.data)));
    source.addEventListener("problem", (event) => problem(JSON.parse(event.data)));
    source.addEventListener("error", () => {
      if (source && source.readyState === EventSource.CLOSED) {  // refused: it does not try again by itself
        quiet();
        again = setTimeout(listen, RETRY_MS);
      }
    });
  }
  // A hidden page holds no connection: a browser has six for all pages of one server.
  function quiet() {
    source?.close();
    source = null;
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? quiet() : listen()));
  addEventListener("pagehide", quiet);
  addEventListener("pageshow", listen);

  function problem(news) {
    if (news.problem) line("problem").textContent = `Live updates stopped: ${news.problem}`;
    else gone("problem");
  }

  // -- what becomes of it ---------------------------------------------------------------------------------------

  const waiting = new Set();  // sessions that changed since this page was made
  let unnamed = 0;
  let fetching = null;
  function changed(news) {
    state = news.state;
    if (news.sessions && !news.n) return;  // labels, values across sessions: nothing that happened
    const isHere = !news.sessions || news.sessions.includes(session) || news.n > news.sessions.length;
    if (session && document.querySelector("[data-live-region]")) {
      if (isHere) fetching = (fetching || Promise.resolve()).then(renew).then(() => tell("live:changed", news));
      return;
    }
    for (const id of news.sessions || []) waiting.add(id);
    unnamed = Math.max(unnamed, news.n - (news.sessions || []).length);
    const n = waiting.size + unnamed;
    const button = line("changed");
    button.textContent = `${n ? `${plural(n, "session")} changed` : "The store changed"}: reload`;
    button.onclick = () => location.reload();
  }

  async function renew() {
    let fresh;
    try {
      const answer = await fetch(main.dataset.liveAddress || location.pathname + location.search, { cache: "no-store" });
      if (!answer.ok) return;
      fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      return;  // the server ends, or answers the next time
    }
    const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - AT_END_PX;
    const added = [];
    for (const region of document.querySelectorAll("[data-live-region]")) {
      const now = fresh.querySelector(`[data-live-region="${CSS.escape(region.dataset.liveRegion)}"]`);
      if (now) added.push(...merged(region, now));
    }
    if (!added.length) return;
    tell("live:added", added);
    if (atEnd && !location.hash) {
      gone("added");
      scrollTo({ top: document.documentElement.scrollHeight });
      return;
    }
    const button = line("added");
    const all = (button.added || []).concat(added).filter((entry) => entry.isConnected);
    button.added = all;
    button.textContent = plural(all.length, "new event");
    leadsTo(button, all[0]);
  }
  function leadsTo(button, element) {
    button.onclick = () => {
      element?.scrollIntoView({ block: "center" });
      button.remove();
    };
  }
  // A page that loads its events by itself says so ("live:more") of the element in which new ones come.
  document.addEventListener("live:more", (event) => {
    const button = line("added");
    if (button.added) return;
    button.textContent = "New events";
    leadsTo(button, event.detail);
  });

  // The region as `now` is: what has an id stays the very element where it says the same, so that what is open, marked
  // or focused stays so. Gives the elements with an id that are new.
  function merged(region, now) {
    const held = new Map();
    for (const child of region.children) if (child.id) held.set(child.id, child);
    if (!held.size && !now.querySelector(":scope > [id]")) {
      if (region.textContent !== now.textContent) replace(region, now);
      return [];
    }
    const added = [];
    const next = [...now.childNodes].map((child) => {
      const before = child.id && held.get(child.id);
      if (before && before.textContent === child.textContent) return before;
      const taken = document.adoptNode(child);
      if (before) unfold(before, taken);
      else if (child.id) added.push(taken);
      if (child.id) taken.classList.add("fresh");
      return taken;
    });
    const kept = new Set(next);
    // Nothing that stays is moved: moving would take the focus and the place of scrolling from it.
    let at = region.firstChild;
    for (const child of next) {
      if (child === at) {
        at = at.nextSibling;
        continue;
      }
      const stays = at && at.id && kept.has(at);
      region.insertBefore(child, at);
      if (at && !stays && child !== at) {
        const over = at;
        at = at.nextSibling;
        over.remove();
      }
    }
    while (at) {
      const over = at;
      at = at.nextSibling;
      over.remove();
    }
    return added;
  }

  function replace(region, now) {
    const focused = region.contains(document.activeElement) && document.activeElement.id;
    unfold(region, now);
    const top = region.scrollTop;
    region.replaceChildren(...now.childNodes);
    region.scrollTop = top;
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  }

  // What the reader opened or closed stays so.
  function unfold(before, now) {
    const folds = [...now.querySelectorAll("details")];
    [...before.querySelectorAll("details")].forEach((fold, n) => {
      if (folds[n]) folds[n].open = fold.open;
    });
    if (before instanceof HTMLDetailsElement && now instanceof HTMLDetailsElement) now.open = before.open;
  }

  listen();
})();
