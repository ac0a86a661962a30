// The price of the plan follows every ± that is changed: the old price goes at once, and so does its request.

import { watch } from "./underway.js";

const board = document.getElementById("board");
const PAUSE = 250; // between keys of one number
let timer = 0;
let running = null;

function stale() {
  running?.abort();
  board.setAttribute("aria-busy", "true");
  for (const joint of board.querySelectorAll(".joint")) joint.textContent = "Pricing …";
  for (const old of board.querySelectorAll(".priced")) old.replaceChildren();
  for (const button of board.querySelectorAll("#pay button")) {
    button.disabled = true;
    button.textContent = "Pricing …";
  }
}

async function refresh() {
  running = new AbortController();
  const signal = running.signal;
  const form = document.getElementById("set");
  try {
    const sent = { method: "POST", body: new URLSearchParams(new FormData(form)), signal, headers: { Part: "board" } };
    const response = await fetch(form.action, sent);
    if (response.redirected || ![200, 422].includes(response.status)) { location.assign("/plan"); return; }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (signal.aborted) return;
    const at = document.activeElement?.id;
    const typed = Object.fromEntries(["field-title", "field-spend"].map((id) => [id, document.getElementById(id)?.value]));
    board.replaceChildren(...page.body.childNodes);
    for (const [id, value] of Object.entries(typed)) if (value && document.getElementById(id)) document.getElementById(id).value = value;
    const again = at && board.querySelector(`#${CSS.escape(at)}`);
    if (again) { again.focus({ preventScroll: true }); again.setSelectionRange?.(again.value.length, again.value.length); }
    ready();
    board.removeAttribute("aria-busy");
  } catch (error) {
    if (error.name !== "AbortError") location.assign("/plan");
  }
}

function ready() {
  for (const button of board.querySelectorAll(".set-actions")) button.hidden = true;
}

board.addEventListener("input", (event) => {
  if (event.target.form?.id !== "set") return;
  clearTimeout(timer);
  stale();
  timer = setTimeout(refresh, PAUSE);
});

board.addEventListener("submit", (event) => {
  if (event.target.id === "set") { event.preventDefault(); clearTimeout(timer); stale(); refresh(); }
  else if (event.target.id === "pay") {
    if (board.getAttribute("aria-busy") === "true" || event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "yes";
    event.target.querySelector("button.primary").textContent = "Asking …";
    watch(event.target);
  }
});

ready();
