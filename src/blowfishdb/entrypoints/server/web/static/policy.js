// Edit the sentence, and the page follows: the same address is fetched, and the parts that changed replaced.
// Each change is a step in the browser's history, so going back undoes it.

import { drawAll } from "./charts.js";
import "./groups.js";

const form = document.getElementById("policy");
const status = document.getElementById("status");
const price = () => document.querySelector("#price-live .price");
let asking = new AbortController();
let shown = location.search;

function address() {
  const sent = new URLSearchParams();
  for (const [name, value] of new FormData(form)) {
    const [operand, column] = name.split(/\.(.*)/s);
    const unused = column && operand !== "hide" && form.elements[`hide.${column}`]?.value !== operand;
    if (!unused && (value || name === "bins")) sent.append(name, value);
  }
  return `${form.getAttribute("action")}?${sent}`;
}

const edited = (part) => [...part.querySelectorAll("textarea")].some((box) => box.value !== box.defaultValue);

function replace(page) {
  for (const none of page.querySelectorAll("noscript")) none.remove(); // its pictures would be fetched
  for (const part of page.querySelectorAll("[data-live]")) {
    const old = document.getElementById(part.id);
    if (old && !edited(old) && !old.isEqualNode(part)) {
      old.replaceWith(part);
      drawAll(part);
    }
  }
  for (const { id, textContent } of document.querySelectorAll("[data-live] > .mistake")) {
    form.elements.namedItem(id.slice("wrong-".length)).setAttribute("aria-invalid", String(textContent !== ""));
  }
  form.elements.was.value = page.querySelector("input[name=was]").value;
}

async function follow() {
  asking.abort();
  const mine = asking = new AbortController();
  const wanted = address();
  for (const part of document.querySelectorAll("[data-live]")) part.setAttribute("aria-busy", "true");
  price().textContent = "Pricing …"; // the old price is of another policy
  status.textContent = "Working …";
  try {
    const response = await fetch(wanted, { headers: { Accept: "text/html" }, signal: mine.signal });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok || response.redirected) { location.assign(wanted); return; }
    replace(page);
    history.pushState(null, "", wanted);
    shown = location.search;
    status.textContent = "The page shows the policy as it reads now.";
  } catch {
    if (mine.signal.aborted) return; // by a later change
    price().textContent = status.textContent = "No price: the server did not answer. Try again.";
  } finally {
    if (mine === asking) for (const part of document.querySelectorAll("[aria-busy]")) part.removeAttribute("aria-busy");
  }
}

form.addEventListener("submit", (event) => { event.preventDefault(); follow(); });
document.addEventListener("change", (event) => {
  if (event.target.form !== form) return;
  const chosen = event.target;
  if (chosen.name.startsWith("hide.")) {
    const operand = form.elements[`${chosen.value}.${chosen.name.slice(5)}`];
    if (operand && !operand.value) { operand.focus(); return; } // nothing to show until a distance is typed
  }
  if (["column", "place"].includes(chosen.name)) location.assign(address());
  else follow();
});
for (const about of document.querySelectorAll("details.about")) {
  about.addEventListener("toggle", () => { // the question follows the column that is open
    const column = form.elements.namedItem("column");
    if (!about.open || !column || column.value === about.dataset.column || about.classList.contains("wrong")) return;
    column.value = about.dataset.column;
    location.assign(address());
  });
}
addEventListener("popstate", () => { if (location.search !== shown) location.reload(); }); // a jump to #main is no step
