// Small comforts on every page; everything works without them.

const root = document.documentElement;

export function isDark() {
  const chosen = root.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setTheme(name) {
  root.dataset.theme = name;
  document.cookie = `theme=${name}; path=/; max-age=31536000; samesite=strict`;
  document.dispatchEvent(new CustomEvent("themechange"));
}

function themeToggle(form) {
  const button = form.querySelector("button");
  const label = () => {
    button.value = isDark() ? "light" : "dark";
    button.textContent = isDark() ? "Light theme" : "Dark theme";
  };
  label();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    setTheme(button.value);
    label();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    label();
    document.dispatchEvent(new CustomEvent("themechange"));
  });
}

function submitOnChange(form) {
  form.querySelector("button[type=submit]").hidden = true;
  form.addEventListener("change", () => form.requestSubmit());
}

function copyButton(button) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    const before = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = before; }, 1500);
  });
}

document.querySelectorAll("#theme-form").forEach(themeToggle);
document.querySelectorAll("form[data-submit-on-change]").forEach(submitOnChange);
document.querySelectorAll("button[data-copy]").forEach(copyButton);
