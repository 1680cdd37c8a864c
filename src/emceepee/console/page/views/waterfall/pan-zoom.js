// Moving along the time axis with pointer and wheel.

const DRAG_STARTS = 5; // pixels; less is a click
const WHEEL_STEP = 0.0022;

/** `axis` has `width` and `left`; `view` has `zoom(factor, part)` and `panBy(pixels)`. */
export function listenToTimeline(scroller, axis, view) {
  scroller.addEventListener("wheel", (event) => onWheel(event, axis, view), { passive: false });
  scroller.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.target.closest(".row-line, .axis")) drag(event, scroller, view);
  });
}

function onWheel(event, axis, view) {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    view.zoom(Math.exp(event.deltaY * WHEEL_STEP), (event.clientX - axis.left) / axis.width);
    return;
  }
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
  event.preventDefault();
  view.panBy(sideways);
}

function drag(down, scroller, view) {
  let x = down.clientX;
  let isDragging = false;
  const move = (event) => {
    if (!isDragging && Math.abs(event.clientX - down.clientX) < DRAG_STARTS) return;
    if (!isDragging) scroller.setPointerCapture(down.pointerId);
    isDragging = true;
    scroller.classList.add("dragging");
    view.panBy(x - event.clientX);
    x = event.clientX;
  };
  const end = () => {
    scroller.removeEventListener("pointermove", move);
    scroller.classList.remove("dragging");
    if (isDragging) addEventListener("click", swallow, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", swallow, { capture: true }), 0);
  };
  scroller.addEventListener("pointermove", move);
  for (const ending of ["pointerup", "pointercancel"]) scroller.addEventListener(ending, end, { once: true });
}

// A drag that ends over a row would otherwise open it.
function swallow(event) {
  event.stopPropagation();
  event.preventDefault();
}
