// Points of the chart lead where the links of the table lead; long lists show how far they are.

const form = document.getElementById("question");

document.addEventListener("drawn", ({ target, detail }) => {
  if (target.id !== "tradeoff") return;
  detail.view.addEventListener("click", (event, item) => {
    const name = item?.datum?.policy;
    const link = name && document.querySelector(`a[data-policy="${CSS.escape(name)}"]`);
    if (link) link.click();
  });
});

const pause = (time) => new Promise((done) => setTimeout(done, time));

async function finished(address) {
  for (;;) {
    const job = await (await fetch(address)).json();
    if (job.state !== "running") return;
    const bar = document.getElementById("bar");
    if (job.of) { bar.max = job.of; bar.value = job.done; }
    document.getElementById("far").textContent = job.of ? `${job.done} of ${job.of}` : "";
    await pause(150);
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const fields = new URLSearchParams(new FormData(form));
  const page = `${form.getAttribute("action")}?${fields}`;
  const token = form.querySelector("input[name=csrf]").value;
  const button = form.querySelector("button[type=submit]");
  document.getElementById("progress").hidden = false;
  button.disabled = true;
  try {
    const body = new URLSearchParams(fields);
    body.set("csrf", token);
    const started = await fetch(form.dataset.job, { method: "POST", body });
    if (started.status === 202) await finished(started.headers.get("Location"));
  } finally {
    location.assign(page); // the page itself says what went wrong, if anything did
  }
});

addEventListener("pageshow", () => {
  document.getElementById("progress").hidden = true;
  form.querySelector("button[type=submit]").disabled = false;
});
