"use strict";
// What is still being made comes into its place, part by part and when it is there; the rest of the page is left alone.
(() => {
  const WAIT_MS = 3000;
  const look = async () => {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const place = document.querySelector("[data-again]");
    const made = page.getElementById(place.id);
    const isRead = made.hasAttribute("data-again") && place.contains(document.activeElement);
    if (!isRead) place.replaceWith(made);
  };
  const wait = () => {
    if (document.querySelector("[data-again]")) setTimeout(() => look().catch(() => {}).finally(wait), WAIT_MS);
  };
  wait();
})();
