// While a synthetic table is made, a bar shows how far it is; without a script the form just waits.

const pause = (time) => new Promise((done) => setTimeout(done, time));

async function finished(address) {
  for (;;) {
    const job = await (await fetch(address)).json();
    if (job.state !== "running") return job;
    const bar = document.getElementById("bar");
    if (job.of) { bar.max = job.of; bar.value = job.done; }
    document.getElementById("far").textContent = job.of ? `${job.done} of ${job.of}` : "";
    await pause(250);
  }
}

for (const form of document.querySelectorAll("form.make")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    document.getElementById("making").hidden = false;
    for (const button of document.querySelectorAll("form.make button")) button.disabled = true;
    const body = new URLSearchParams(new FormData(form));
    const started = await fetch(form.dataset.job, { method: "POST", body });
    const job = started.status === 202 ? await finished(started.headers.get("Location")) : null;
    if (job?.state === "done") location.assign(`${location.pathname}/${job.result.id}`);
    else form.submit(); // the page itself says what went wrong; what was made already costs nothing more
  });
}
