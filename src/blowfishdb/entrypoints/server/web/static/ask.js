// Live quotes: a change in the form asks for the quote of the same page, and only for that.

import { watch } from "./underway.js";

const form = document.getElementById("ask");
const quote = document.getElementById("quote");
const PAUSE = 50; // between keys of one number; a quote is due 200 ms after the last
let timer = 0;
let running = null;

// The price comes first and alone; a second request fills in what plain privacy costs and what is cheaper. A new
// change aborts both, and the server gives up what nobody waits for.
async function refresh(address) {
  stale();
  running = new AbortController();
  const signal = running.signal;
  try {
    if (!(await show(address, "price", signal))) return;
    quote.removeAttribute("aria-busy");
    history.replaceState(null, "", address);
    if (quote.querySelector("[data-more]")) await show(address, "quote", signal);
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
}

async function show(address, part, signal) {
  const response = await fetch(address, { signal, headers: { Accept: "text/html", Part: part } });
  if (response.redirected || !response.ok) {
    location.assign(address);
    return false;
  }
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  if (signal.aborted || quote.querySelector("[data-sent]")) return false;
  const held = quote.contains(document.activeElement) ? document.activeElement : null;
  mark(page.getElementById("mistakes"));
  quote.replaceChildren(...page.body.childNodes);
  if (held) alike(held)?.focus({ preventScroll: true });
  return true;
}

// What is wrong with a field stands right behind it.
function mark(found) {
  for (const place of form.querySelectorAll(".mistake")) {
    const said = found.content.getElementById(place.id);
    const field = form.elements[place.id.slice("wrong-".length)];
    place.replaceChildren(...(said ? said.childNodes : []));
    if (said) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
  found.remove();
}

// Whoever has reached a button by the keyboard stays on it when more is filled in around it.
const alike = (element) =>
  [...quote.querySelectorAll(element.tagName)].find((other) => other.textContent === element.textContent);

const address = () => `${location.pathname}?${new URLSearchParams(new FormData(form))}`;

// What is shown is no longer the price of what stands in the form: it goes at once, and so does its request.
function stale() {
  running?.abort();
  quote.setAttribute("aria-busy", "true");
  for (const price of quote.querySelectorAll(".price, .bar .small-only")) price.textContent = "Pricing …";
  for (const old of quote.querySelectorAll(".facts, .fits, .promise, .put-on-plan")) old.hidden = true;
  for (const button of quote.querySelectorAll("#spend button[type=submit]")) {
    button.disabled = true;
    button.textContent = "Pricing …";
  }
}

// Where values have no order, nothing can be asked along it: the question is about their bars then.
function withoutOrder(field) {
  const shape = form.elements.shape;
  const loose = field.id === "field-column" && field.selectedOptions[0].classList.contains("loose");
  if (loose && shape.dataset.along.split(" ").includes(shape.value)) shape.value = "histogram";
}

form.addEventListener("input", (event) => {
  withoutOrder(event.target);
  clearTimeout(timer);
  stale();
  timer = setTimeout(() => refresh(address()), PAUSE);
});

// The price that is shown must be the price of what stands in the form.
quote.addEventListener("submit", (event) => {
  if (event.target.id !== "spend") return;
  if (quote.getAttribute("aria-busy") === "true" || event.target.dataset.sent) {
    event.preventDefault();
    return;
  }
  event.target.dataset.sent = "yes";
  const button = event.target.querySelector("button[type=submit]");
  button.setAttribute("aria-disabled", "true");
  button.textContent = "Asking …";
  watch(event.target);
});

quote.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-quote]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  refresh(link.getAttribute("href").split("#")[0]);
});

// A page from the history of the browser has spent its key.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

document.getElementById("get-quote").hidden = true;
