import { useComputedColorScheme } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { dayAndMonth, shortDate } from '../format.ts';
import type { Series } from './chart.tsx';

const token = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

type Drawn = {
  title: string;
  days: string[];
  series: Series[];
  show: (value: number) => string;
  axis: (value: number) => string;
  max?: number;
};

/** The name of a series at the end of its line. */
type Label = { name: string; colour: string; top: number };

/** Draws the chart. It is a separate chunk, because most pages have no chart. */
export default function Plot(props: Drawn) {
  const box = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme('light');
  const [pointed, setPointed] = useState<number | null>(null);
  const { days, series, show } = props;
  const [labels, setLabels] = useState<Label[]>([]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const size = () => ({ width: element.clientWidth, height: element.clientHeight });
    const options = optionsOf(props, setPointed, (ends) =>
      setLabels((now) => (JSON.stringify(now) === JSON.stringify(ends) ? now : ends)),
    );
    const plot = new uPlot(
      { ...size(), ...options },
      [days.map((_, index) => index), ...series.map((one) => one.values)] as uPlot.AlignedData,
      element,
    );
    const watcher = new ResizeObserver(() => plot.setSize(size()));
    watcher.observe(element);
    return () => {
      watcher.disconnect();
      plot.destroy();
    };
  }, [scheme, JSON.stringify(series), days.join()]);

  const day = pointed === null ? null : days[pointed];
  return (
    <>
      <div
        className="chart"
        ref={box}
        role="img"
        aria-label={`${props.title}: a chart. The table has its numbers.`}
      >
        {labels.map(({ name, colour, top }) => (
          <span
            key={name}
            className="chart-label"
            style={{ color: colour, top: top + 8 - 9, right: 0, width: 70 }}
          >
            {name}
          </span>
        ))}
      </div>
      <p className="small quiet num pointed">
        {day
          ? `${shortDate(day)}: ${series
              .map(({ name, values }) => {
                const value = values[pointed ?? 0] ?? null;
                return `${name.toLowerCase()} ${value === null ? '–' : show(value)}`;
              })
              .join(', ')}`
          : '\u00a0'}
      </p>
    </>
  );
}

function optionsOf(
  drawn: Drawn,
  point: (index: number | null) => void,
  setLabels: (labels: Label[]) => void,
): Omit<uPlot.Options, 'width' | 'height'> {
  const { days, series, max } = drawn;
  // Names are written at the ends of the lines, and need room there. The last day needs less.
  const isNamed = series.length > 1;
  return {
    legend: { show: false },
    padding: [8, isNamed ? 74 : 24, 0, 0],
    cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
    scales: {
      // Bars stand on both sides of their day.
      x: {
        time: false,
        ...(series.some((one) => one.bars) && {
          range: (): [number, number] => [-0.6, days.length - 0.4],
        }),
      },
      y: { range: (_plot, _low, high) => [0, max ?? (high > 0 ? high * 1.08 : 1)] },
    },
    axes: axesOf(drawn),
    series: [{}, ...series.map(drawnSeries)],
    hooks: {
      setCursor: [(own) => point(own.cursor.idx ?? null)],
      draw: [(own) => isNamed && setLabels(labelsOf(own, series))],
    },
  };
}

function axesOf({ days, axis }: Drawn): uPlot.Axis[] {
  const font = `12px ${token('--sans')}`;
  const quiet = token('--quiet');
  const line = token('--line');
  return [
    {
      font,
      stroke: quiet,
      grid: { show: false },
      ticks: { show: false },
      space: 70,
      size: 26,
      gap: 6,
      values: (_plot, splits) =>
        splits.map((split) =>
          Number.isInteger(split) && days[split] ? dayAndMonth(days[split]) : '',
        ),
    },
    {
      font,
      stroke: quiet,
      size: 74,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      values: (_plot, splits) => splits.map((split) => axis(split)),
    },
  ];
}

function drawnSeries(one: Series): uPlot.Series {
  const bars = uPlot.paths.bars?.({ size: [0.7, 40], radius: 0.15 });
  const colour = token(one.colour);
  return one.bars
    ? {
        label: one.name,
        fill: colour,
        stroke: colour,
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      }
    : {
        label: one.name,
        stroke: colour,
        width: 2,
        // A line needs two values. A single value is drawn as a point.
        points: { show: one.values.filter((value) => value !== null).length === 1, size: 8 },
        spanGaps: true,
      };
}

/** Two lines may end at the same height. Their names must not overlap. */
function labelsOf(own: uPlot, series: Series[]): Label[] {
  const ends = series
    .map((one) => ({
      name: one.name,
      colour: `var(${one.colour})`,
      top: own.valToPos(one.values.findLast((value) => value !== null) ?? 0, 'y'),
    }))
    .sort((one, other) => one.top - other.top);
  for (const [index, end] of ends.entries()) {
    const above = ends[index - 1];
    if (above && end.top < above.top + 15) end.top = above.top + 15;
  }
  const last = ends.at(-1);
  const room = own.over.clientHeight - 8;
  if (last && last.top > room) {
    for (const [index, end] of ends.toReversed().entries()) {
      end.top = Math.min(end.top, room - index * 15);
    }
  }
  return ends;
}
