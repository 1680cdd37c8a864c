// A classic script in the head: the chosen theme stands before the first paint, so that nothing flashes.
(() => {
  try {
    const theme = localStorage.getItem("emceepee.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is refused: the system's theme holds.
  }
})();
