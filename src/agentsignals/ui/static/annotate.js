// Keys for the form to label with: a class's digit or letter, u, n, s and the arrows. Escape leaves the note.
"use strict";
const keyed = new Map([...document.querySelectorAll("[data-key]")].map((e) => [e.dataset.key, e]));
const form = document.querySelector("form.annotate");
let sent = false;
form?.addEventListener("submit", (event) => {
  if (sent) event.preventDefault(); // a key that is held down labels one thing
  sent = true;
});
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("textarea, input:not([type=checkbox])");
  if (typing && event.key === "Escape") event.target.blur();
  if (typing || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
  const element = keyed.get(event.key);
  if (!element) return;
  event.preventDefault();
  if (element.matches("textarea")) element.focus();
  else element.click();
});
window.addEventListener("pageshow", () => { sent = false; });
