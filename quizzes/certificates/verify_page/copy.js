// The buttons that copy a field; what cannot be copied can be selected.

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.addEventListener("click", async () => {
    const said = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      said.textContent = (said.dataset.copied || "{field} copied.").replace("{field}", () => button.dataset.label);
    } catch {
      said.textContent = said.dataset.refused || "This browser does not let the page copy. Select the text and copy it.";
    }
  });
}
