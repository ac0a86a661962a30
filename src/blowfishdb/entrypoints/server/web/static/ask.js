// Live quotes: a change in the form asks for the quote of the same page, and only for that.

const form = document.getElementById("ask");
const quote = document.getElementById("quote");
const PAUSE = 50; // between keys of one number; a quote is due 200 ms after the last
let timer = 0;
let running = null;

async function refresh(address) {
  running?.abort();
  running = new AbortController();
  quote.setAttribute("aria-busy", "true");
  try {
    const response = await fetch(address, { signal: running.signal, headers: { Accept: "text/html", Part: "quote" } });
    if (response.redirected || !response.ok) {
      location.assign(address);
      return;
    }
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    quote.replaceChildren(...page.body.childNodes);
    quote.removeAttribute("aria-busy");
    history.replaceState(null, "", address);
  } catch (error) {
    if (error.name !== "AbortError") location.assign(address);
  }
}

const address = () => `${location.pathname}?${new URLSearchParams(new FormData(form))}`;

form.addEventListener("input", () => {
  clearTimeout(timer);
  quote.setAttribute("aria-busy", "true");
  timer = setTimeout(() => refresh(address()), PAUSE);
});

// The price that is shown must be the price of what stands in the form.
quote.addEventListener("submit", (event) => {
  if (quote.getAttribute("aria-busy") === "true" || event.target.dataset.sent) {
    event.preventDefault();
    return;
  }
  event.target.dataset.sent = "yes";
  const button = event.target.querySelector("button");
  button.setAttribute("aria-disabled", "true");
  button.textContent = "Asking …";
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
