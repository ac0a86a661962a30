// While an answer is under way the page says what is happening, and how long it has taken; it can be given up. The
// form itself is sent as it is without a script, so the answer comes as the next page.

const SOON = 700; // what is answered sooner needs no bar
const EVERY = 700;

export function watch(form) {
  const bar = form.querySelector(".underway");
  const began = performance.now();
  const said = bar.querySelector("output");
  const fields = new URLSearchParams({ csrf: form.elements.csrf.value, key: form.elements.key.value });
  setTimeout(async function look() {
    bar.hidden = false;
    let words = "";
    try {
      const response = await fetch(bar.dataset.state);
      if (response.ok && !response.redirected) words = (await response.json()).words;
    } catch { /* the answer is there: this page is being left */ }
    said.textContent = `${words} ${Math.round((performance.now() - began) / 1000)} s`;
    setTimeout(look, EVERY);
  }, SOON);
  bar.querySelector("button")?.addEventListener("click", async (event) => {
    event.target.disabled = true;
    await fetch(bar.dataset.stop, { method: "POST", body: fields });
  });
}
