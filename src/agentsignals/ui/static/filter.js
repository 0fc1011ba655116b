"use strict";
// A form leaves what was not filled in out of the address, so that the address stays one to keep and to send.
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-tidy]");
  if (!form) return;
  const { signal, op } = form.elements;
  if (signal && !signal.value) op.disabled = true;
  const empty = [...form.elements].filter((field) => field.name && field.value === "");
  for (const field of empty) field.disabled = true;
  setTimeout(() => { for (const field of [...empty, op]) if (field) field.disabled = false; });
});
// A tab that is gone back to shows the form as its address has it.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) for (const form of document.querySelectorAll("form[data-tidy]")) form.reset();
});
// On a phone what was asked for comes first.
if (matchMedia("(max-width: 48rem)").matches) {
  for (const folded of document.querySelectorAll("details.filtering, details.more")) folded.open = false;
}
