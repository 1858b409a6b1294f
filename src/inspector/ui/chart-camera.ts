import { type Chart, type ChartBox, type ChartLayout, chartText } from "./chart.ts";

/** In CSS pixels, from the upper left corner. */
export interface Position {
  readonly x: number;
  readonly y: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** Position and scale of a layout in its box. */
export interface Camera extends Position {
  readonly scale: number;
}

/** Below this scale, state names would be smaller than 10 pixels. */
export const LEAST_WHOLE_SCALE = 10 / chartText.stateSize;
/** Below this scale, the texts of the near layout would be smaller than 10 pixels. */
export const LEAST_NEAR_SCALE = 10 / chartText.size;
const MOST_WHOLE_SCALE = 1.5;
const MARGIN = 4;

/** The layout that fits into the box at the largest scale. */
export function wholeLayout({ layouts }: Chart, size: Size): ChartLayout {
  const whole = layouts.filter(({ isNear }) => !isNear);
  return whole.reduce((best, one) => (fitted(one, size).scale > fitted(best, size).scale ? one : best));
}

export function nearLayout({ layouts }: Chart): ChartLayout {
  return layouts.find(({ isNear }) => isNear) as ChartLayout;
}

/** Shows the whole layout, centered in the box. */
export function fitted({ width, height }: ChartLayout, size: Size): Camera {
  const room = Math.min((size.width - 2 * MARGIN) / width, (size.height - 2 * MARGIN) / height);
  const scale = Math.max(0.1, Math.min(MOST_WHOLE_SCALE, room));
  return { scale, x: (size.width - width * scale) / 2, y: (size.height - height * scale) / 2 };
}

/** Centers a box of the layout, without showing space beyond the layout's edges. */
export function centred(layout: ChartLayout, box: ChartBox | undefined, scale: number, size: Size): Camera {
  const place = (length: number, room: number, at: number): number => {
    if (length * scale <= room - 2 * MARGIN) return (room - length * scale) / 2;
    return Math.min(MARGIN, Math.max(room - length * scale - MARGIN, room / 2 - at * scale));
  };
  const { x, y } = box ? middleOf(box) : { x: 0, y: layout.height / 2 };
  return { scale, x: place(layout.width, size.width, x), y: place(layout.height, size.height, y) };
}

/** Changes the scale and keeps the zoomed point in its position. */
export function zoomedAt(camera: Camera, scale: number, { x, y }: Position): Camera {
  const ratio = scale / camera.scale;
  return { scale, x: x - (x - camera.x) * ratio, y: y - (y - camera.y) * ratio };
}

/** The index of the innermost state at a point of the box, else of the nearest state. */
export function stateAt({ boxes }: ChartLayout, camera: Camera, { x, y }: Position): number {
  const [atX, atY] = [(x - camera.x) / camera.scale, (y - camera.y) / camera.scale];
  const distances = boxes.map(([left, top, width, height]) => {
    const outside = Math.hypot(Math.max(left - atX, 0, atX - left - width), Math.max(top - atY, 0, atY - top - height));
    return outside === 0 ? -1 / (width * height) : outside;
  });
  return distances.indexOf(Math.min(...distances));
}

export function middleOf([x, y, width, height]: ChartBox): Position {
  return { x: x + width / 2, y: y + height / 2 };
}
