// Importing with less effort: a file that is dropped is sent at once, with how much of it is there; boxes are
// counted, ticked together, and reached by the arrow keys. Without this, forms do the same.

const upload = document.getElementById("upload");

function progress(part) {
  document.querySelector(".sending").hidden = false;
  document.getElementById("sent").value = 100 * part;
  document.getElementById("sent-words").textContent = part < 1 ? `${Math.round(100 * part)} % sent` : "Looking at the columns …";
}

function send(form) {
  const request = new XMLHttpRequest();
  const again = () => { form.removeEventListener("submit", caught); form.submit(); }; // the page says what is wrong
  request.open("POST", form.action);
  request.setRequestHeader("Part", "address");
  request.upload.addEventListener("progress", (event) => { if (event.lengthComputable) progress(event.loaded / event.total); });
  request.addEventListener("load", () => {
    if (request.status === 200) location.assign(JSON.parse(request.responseText).next);
    else again();
  });
  request.addEventListener("error", again);
  progress(0);
  form.querySelector("button[type=submit]").disabled = true;
  request.send(new FormData(form));
}

function caught(event) {
  event.preventDefault();
  send(upload);
}

if (upload) {
  const drop = document.getElementById("drop");
  const chosen = upload.querySelector("input[type=file]");
  upload.addEventListener("submit", caught);
  for (const kind of ["dragover", "dragenter"]) drop.addEventListener(kind, (event) => { event.preventDefault(); drop.classList.add("over"); });
  drop.addEventListener("dragleave", () => drop.classList.remove("over"));
  drop.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length !== 1) return;
    chosen.files = event.dataTransfer.files;
    upload.requestSubmit();
  });
}

const all = document.getElementById("tick-all");

function rows() { return [...document.querySelectorAll("tr.column")]; }

function needed(row) {
  return row.querySelector(".use").checked && row.querySelector("select[name^=kind-]").value !== "boolean";
}

function count() {
  const wanted = rows().filter(needed);
  const done = wanted.filter((row) => row.querySelector(".confirming").checked);
  const [now, of] = document.querySelectorAll("#confirmed-count b");
  now.textContent = done.length;
  of.textContent = wanted.length;
  all.checked = wanted.length > 0 && done.length === wanted.length;
  all.indeterminate = done.length > 0 && !all.checked;
}

function move(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const field = event.target;
  if (!step || !["checkbox", "text"].includes(field.type)) return;
  const listed = rows();
  const next = listed[listed.indexOf(field.closest("tr.column")) + step];
  const [name] = field.name.split(/-\d+$/);
  const there = next?.querySelector(`[name^="${name}-"]:not([type=hidden])`);
  if (!there) return;
  event.preventDefault();
  (there.offsetParent ? there : next.querySelector(".use")).focus();
}

if (all) {
  all.addEventListener("change", () => {
    for (const row of rows()) if (needed(row)) row.querySelector(".confirming").checked = all.checked;
    count();
  });
  document.querySelector(".dense").addEventListener("change", count);
  document.querySelector(".dense").addEventListener("keydown", move);
  count();
}
