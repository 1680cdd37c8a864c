// Moving along the time axis with pointer and wheel.

/**
 * @typedef {{ width: number, left: number }} Axis
 * @typedef {{ zoom: (factor: number, at: number) => void, panBy: (pixels: number) => void }} Zoomable
 */

const DRAG_THRESHOLD_PX = 5; // pixels; a shorter movement is a click
const WHEEL_ZOOM_RATE = 0.0022;

/**
 * @param {HTMLElement} scroller
 * @param {Axis} axis
 * @param {Zoomable} view
 */
export function enablePanZoom(scroller, axis, view) {
  scroller.addEventListener("wheel", (event) => onWheel(event, axis, view), { passive: false });
  scroller.addEventListener("pointerdown", (event) => {
    const isOnTimeline = event.target instanceof Element && event.target.closest(".row-track, .axis");
    if (event.button === 0 && isOnTimeline) drag(event, scroller, view);
  });
}

/**
 * @param {WheelEvent} event
 * @param {Axis} axis
 * @param {Zoomable} view
 */
function onWheel(event, axis, view) {
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    view.zoom(Math.exp(event.deltaY * WHEEL_ZOOM_RATE), (event.clientX - axis.left) / axis.width);
    return;
  }
  const sideways = event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX;
  if (Math.abs(sideways) <= Math.abs(event.shiftKey ? 0 : event.deltaY)) return;
  event.preventDefault();
  view.panBy(sideways);
}

/**
 * @param {PointerEvent} down
 * @param {HTMLElement} scroller
 * @param {Zoomable} view
 */
function drag(down, scroller, view) {
  let x = down.clientX;
  let isDragging = false;
  const move = (/** @type {PointerEvent} */ event) => {
    if (!isDragging && Math.abs(event.clientX - down.clientX) < DRAG_THRESHOLD_PX) return;
    if (!isDragging) scroller.setPointerCapture(down.pointerId);
    isDragging = true;
    scroller.classList.add("dragging");
    view.panBy(x - event.clientX);
    x = event.clientX;
  };
  const end = () => {
    scroller.removeEventListener("pointermove", move);
    scroller.classList.remove("dragging");
    if (isDragging) addEventListener("click", suppressClick, { capture: true, once: true });
    setTimeout(() => removeEventListener("click", suppressClick, { capture: true }), 0);
  };
  scroller.addEventListener("pointermove", move);
  for (const ending of ["pointerup", "pointercancel"]) scroller.addEventListener(ending, end, { once: true });
}

/**
 * Otherwise, a drag that ends over a row would open it.
 * @param {Event} event
 */
function suppressClick(event) {
  event.stopPropagation();
  event.preventDefault();
}
