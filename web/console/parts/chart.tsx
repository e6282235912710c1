import { lazy, type ReactNode, Suspense, useState } from 'react';
import { shortDate } from '../format.ts';
import { Card } from './basics.tsx';

const Plot = lazy(() => import('./plot.tsx'));

export type Series = {
  name: string;
  /** A token of the style sheet. */
  colour: '--accent' | '--warning' | '--danger' | '--quiet';
  values: (number | null)[];
  bars?: boolean;
};

/**
 * A chart with a value for each day. Its axis begins at zero, its series are named at their ends,
 * and a hidden table has the same numbers.
 */
export function DayChart(props: {
  title: string;
  days: string[];
  series: Series[];
  show: (value: number) => string;
  /** A shorter format for the axis. */
  axis: (value: number) => string;
  summary?: ReactNode;
  className?: string;
  /** The top of the axis, for shares. */
  max?: number;
}) {
  const [asTable, setAsTable] = useState(false);
  const isEmpty = props.series.every(({ values }) => values.every((value) => !value));
  return (
    <Card
      title={props.title}
      className={props.className ?? ''}
      aside={
        <button
          type="button"
          className="link"
          aria-pressed={asTable}
          onClick={() => setAsTable(!asTable)}
        >
          {asTable ? 'Show the chart' : 'Show the table'}
          <span className="visually-hidden">: {props.title}</span>
        </button>
      }
    >
      {props.summary}
      {asTable ? (
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a long table scrolls, also by keys.
        <section className="chart tall scroll" tabIndex={0} aria-label={props.title}>
          <table className="table">
            <thead>
              <tr>
                <th scope="col">Day</th>
                {props.series.map(({ name }) => (
                  <th key={name} scope="col" className="right">
                    {name}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {props.days.map((day, index) => (
                <tr key={day}>
                  <td>{shortDate(day)}</td>
                  {props.series.map(({ name, values }) => {
                    const value = values[index] ?? null;
                    return (
                      <td key={name} className="right">
                        {value === null ? '–' : props.show(value)}
                      </td>
                    );
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : isEmpty ? (
        <div className="chart none">
          <p className="quiet">Nothing yet in these {props.days.length} days.</p>
        </div>
      ) : (
        <Suspense fallback={<div className="chart" role="status" aria-label="Loading" />}>
          <Plot {...props} />
        </Suspense>
      )}
    </Card>
  );
}
