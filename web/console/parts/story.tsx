import { Button } from '@mantine/core';
import { useAction } from './actions.tsx';
import { Card, Notice } from './basics.tsx';

/**
 * The label of the button that fills a sandbox without orders, so that a newcomer sees the console
 * at work.
 */
const playing = 'Play a story of twelve weeks';

export function StoryCard({ isPlaying }: { isPlaying: boolean }) {
  const { run, busy, problem } = useAction();
  const play = () => run({ path: '/api/sandbox/story', body: {}, what: playing });
  return (
    <Card
      title={
        isPlaying ? 'Twelve weeks of business are being played' : 'This sandbox has no orders yet'
      }
    >
      <p className="quiet">
        {isPlaying
          ? 'It takes about a minute. The figures grow while it plays, and the charts follow in a few minutes.'
          : 'Play twelve weeks of a small shop: three hundred orders, late payments, refunds, disputes and payouts. The clock of the demo merchant moves forward with them.'}
      </p>
      {problem !== null && <Notice kind="bad">{problem}</Notice>}
      {!isPlaying && (
        <Button size="xs" mt="sm" loading={busy} onClick={play}>
          {playing}
        </Button>
      )}
    </Card>
  );
}
