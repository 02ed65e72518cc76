// Names for those who do not see the theme's arrows and pictures.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary"))
    if (!summary.textContent.trim()) {
      const link = summary.parentElement.previousElementSibling || summary.closest("li");
      summary.setAttribute("aria-label", `pages of ${link.textContent.trim().split("\n")[0]}`);
    }
  for (const link of document.querySelectorAll(".sphx-glr-thumbcontainer a"))
    link.setAttribute("aria-label", link.textContent.trim());
  // its words "Search Ctrl+K" are its name
  for (const button of document.querySelectorAll(".search-button-field"))
    button.removeAttribute("aria-label");
});
