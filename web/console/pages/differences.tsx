import { AlertsFrame, alertName } from '../parts/alert.tsx';
import { useCan } from '../session.tsx';

export default function DifferencesPage() {
  const can = useCan();
  return (
    <AlertsFrame
      title="Reconciliation"
      about="Where the gateway’s records differ from ours. They are compared once a day."
      path="/api/differences"
      label="Differences"
      noun="difference"
      parameter="difference"
      nameOf={(kind) => alertName(kind.replace(/^gateway_/, ''))}
      heads={{ name: 'Difference', detail: 'What to do', at: 'Found' }}
      empty={{
        title: 'The gateway and our books agree',
        text: 'No difference is open. A new one appears here after the daily comparison.',
      }}
      mayTake={false}
      mayClose={can('differences.close')}
    />
  );
}
