// Groups of values by dragging: each value is a chip in the box of its group. A finger taps a chip and then a
// box; by keyboard, the arrow keys move the chip that has the focus. The text below says the same, and is what is
// sent; without this, it is typed.

const SEPARATOR = /;|,\s|,(?!\d{3}(?!\d))/;

function groupsIn(text, values) {
  const groups = text.value.split("\n").map((line) => line.split(SEPARATOR).map((part) => part.trim()).filter(Boolean));
  const listed = groups.flat();
  if (listed.some((value) => !values.includes(value)) || new Set(listed).size < listed.length) return null;
  const left = values.filter((value) => !listed.includes(value));
  return [...groups.filter((group) => group.length), ...left.map((value) => [value])];
}

function board(text) {
  const values = JSON.parse(text.dataset.values);
  const place = document.createElement("div");
  const said = document.createElement("p");
  place.className = "board";
  said.className = "for-readers";
  said.setAttribute("role", "status");
  text.before(place, said);
  let dragged = "";
  let picked = "";

  function move(value, to) {
    const groups = groupsIn(text, values);
    const from = groups.findIndex((group) => group.includes(value));
    if (to < 0 || to > groups.length || to === from || (to === groups.length && groups[from].length === 1)) return;
    groups[from].splice(groups[from].indexOf(value), 1);
    (groups[to] ??= []).push(value);
    const kept = groups.filter((group) => group.length);
    text.value = kept.map((group) => group.join("; ")).join("\n");
    show();
    place.querySelector(`[data-value="${CSS.escape(value)}"]`).focus();
    const now = kept.find((group) => group.includes(value));
    said.textContent = now.length > 1 ? `${value} is in a group with ${now.filter((each) => each !== value).join(", ")}.` : `${value} is in a group of its own.`;
    text.dispatchEvent(new Event("change", { bubbles: true }));
  }

  function chip(value, at) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "chip", draggable: true, textContent: value });
    button.dataset.value = value;
    button.setAttribute("aria-label", `${value}, in group ${at + 1}; arrow keys move it`);
    button.setAttribute("aria-pressed", "false");
    button.addEventListener("click", () => {
      picked = picked === value ? "" : value;
      for (const each of place.querySelectorAll(".chip")) each.setAttribute("aria-pressed", String(each.dataset.value === picked));
    });
    button.addEventListener("dragstart", (event) => { dragged = value; event.dataTransfer.setData("text/plain", value); });
    button.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      move(value, at + step);
    });
    return button;
  }

  function box(group, at) {
    const part = document.createElement("div");
    const name = document.createElement("span");
    part.className = group.length ? "group" : "group new";
    part.setAttribute("role", "group");
    name.textContent = group.length ? `Group ${at + 1}` : "Drop here for a new group";
    part.setAttribute("aria-label", name.textContent);
    part.append(name, ...group.map((value) => chip(value, at)));
    for (const kind of ["dragover", "dragenter"]) part.addEventListener(kind, (event) => { event.preventDefault(); part.classList.add("over"); });
    part.addEventListener("click", (event) => { if (picked && !event.target.closest(".chip")) move(picked, at); });
    part.addEventListener("dragleave", () => part.classList.remove("over"));
    part.addEventListener("drop", (event) => { event.preventDefault(); move(dragged, at); });
    return part;
  }

  function show() {
    picked = "";
    const groups = groupsIn(text, values);
    place.hidden = groups === null; // the text says more than chips can
    const hint = document.createElement("p");
    hint.className = "hint";
    hint.textContent = "Drag a value to another group; or tap it, then the group; or use the arrow keys.";
    place.replaceChildren(...(groups ? [hint, ...[...groups, []].map(box)] : []));
  }

  text.addEventListener("input", show);
  show();
}

document.querySelectorAll("textarea[data-values]").forEach(board);
