import { useLayoutEffect, useRef, useState } from "preact/hooks";

/** Tracks the size of an element. */
export function useSize() {
  const element = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  useLayoutEffect(() => {
    const { current } = element;
    if (!current) return undefined;
    const look = (): void => setSize({ width: current.clientWidth, height: current.clientHeight });
    look();
    const observer = new ResizeObserver(look);
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return { element, size };
}

/** Clears a canvas and scales it to device pixels, so that it can be drawn on in CSS pixels. */
export function cleared(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = devicePixelRatio;
  const pixels = { width: Math.round(width * ratio), height: Math.round(height * ratio) };
  if (canvas.width !== pixels.width || canvas.height !== pixels.height) Object.assign(canvas, pixels);
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

const patterns = new Map<string, CanvasPattern | string>();

/** A stripe pattern for reservations and waits. Each pattern is drawn once. */
export function hatch(context: CanvasRenderingContext2D, colour: string): CanvasPattern | string {
  const known = patterns.get(colour);
  if (known !== undefined) return known;
  const tile = document.createElement("canvas");
  tile.width = 6;
  tile.height = 6;
  const pen = tile.getContext("2d");
  if (!pen) return colour;
  pen.strokeStyle = colour;
  pen.lineWidth = 1.5;
  pen.beginPath();
  for (const from of [-6, 0, 6]) {
    pen.moveTo(from, 6);
    pen.lineTo(from + 6, 0);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, "repeat") ?? colour;
  patterns.set(colour, pattern);
  return pattern;
}
