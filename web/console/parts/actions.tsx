import { Button } from '@mantine/core';
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useState } from 'react';
import { ApiError, NotReauthenticated, sendChange } from '../api.ts';
import { Notice } from './basics.tsx';
import { Dialog, useFocusBack } from './dialog.tsx';

export type Action<T> = {
  method?: 'POST' | 'PATCH' | 'DELETE';
  path: string;
  body?: unknown;
  /** The label of the button, which the dialog that asks for the passkey repeats. */
  what: string;
  /** The message shown when the action has succeeded. */
  said?: (answer: T) => string;
  /** Whether the answer says that the action failed. */
  isFailed?: (answer: T) => boolean;
};

/** The message about an action that did not happen. Null if the person decided not to do it. */
export function problemOf(error: unknown): string | null {
  if (error instanceof NotReauthenticated) return null;
  if (error instanceof ApiError && error.status === 0) {
    return 'The service did not answer. Check whether the action took effect before you try again.';
  }
  return error instanceof Error
    ? error.message
    : 'It did not work, and the service did not say why.';
}

/**
 * Sends a change, shows its outcome, and reads everything on the page again. It returns a problem
 * for a dialog to show, or passes it to `report`.
 */
export function useAction(report?: (what: string, problem: string) => void) {
  const client = useQueryClient();
  const [busy, setBusy] = useState(false);
  useFocusBack(busy);
  const [problem, setProblem] = useState<string | null>(null);
  async function run<T>(action: Action<T>): Promise<T | null> {
    const { method = 'POST', path, body, what, said, isFailed } = action;
    setBusy(true);
    setProblem(null);
    let isDone = false;
    try {
      const answer = await sendChange<T>(method, path, body, what);
      isDone = true;
      const color = isFailed?.(answer) ? 'danger' : 'accent';
      if (said) notifications.show({ message: said(answer), color });
      return answer;
    } catch (error) {
      const text = problemOf(error);
      if (report && text !== null) report(what, text);
      else setProblem(text);
      return null;
    } finally {
      // After a success the preview is not read again: the server would refuse to preview an action
      // that has already been done, and the dialog is about to close.
      await client.invalidateQueries({ predicate: ({ meta }) => !(isDone && meta?.isPreview) });
      setBusy(false);
    }
  }
  return { run, busy, problem, clear: () => setProblem(null) };
}

/**
 * An action whose button is in a table. A message shows its problem, because the table has no room.
 */
export const useQuietAction = () =>
  useAction((title, message) => notifications.show({ title, message, color: 'danger' }));

/** A dialog for one action. Its button says what will happen, with the object and the amount. */
export function ActionDialog(props: {
  title: string;
  opened: boolean;
  close: () => void;
  /** The label of the button. */
  what: string;
  danger?: boolean;
  disabled?: boolean;
  busy: boolean;
  problem: string | null;
  onAction: () => void;
  size?: string;
  /** The label of the button that closes the dialog without acting. */
  leave?: string;
  /** Buttons to the left of `leave` and the action. */
  before?: ReactNode;
  /** Whether only `leave` closes the dialog, and neither Escape nor a click outside. */
  stays?: boolean;
  /** Whether the dialog only shows something. */
  hideAction?: boolean;
  children?: ReactNode;
}) {
  return (
    <Dialog
      opened={props.opened}
      close={props.close}
      title={props.title}
      size={props.size ?? 'md'}
      {...(props.stays && { stays: true })}
    >
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          props.onAction();
        }}
      >
        {props.children}
        {props.problem !== null && <Notice kind="bad">{props.problem}</Notice>}
        <div className="row-of end dialog-actions">
          {props.before && <span style={{ marginRight: 'auto' }}>{props.before}</span>}
          <Button variant="default" onClick={props.close}>
            {props.leave ?? 'Close'}
          </Button>
          {!props.hideAction && (
            <Button
              type="submit"
              color={props.danger ? 'danger' : 'accent'}
              loading={props.busy}
              disabled={props.disabled ?? false}
            >
              {props.what}
            </Button>
          )}
        </div>
      </form>
    </Dialog>
  );
}

/** A dialog for an action that takes one request. It closes when the action is done. */
export function SingleActionDialog<T>(props: {
  title: string;
  /** The label of the button. */
  what: string;
  method?: Action<T>['method'];
  path: string;
  body?: unknown;
  said?: Action<T>['said'];
  isFailed?: Action<T>['isFailed'];
  close: () => void;
  /** Called instead of `close` when the action is done. */
  done?: (answer: T) => void;
  /**
   * The content of the dialog once the action is done, in which case it stays open. `once` is set
   * for credentials, which are shown only once.
   */
  result?: { title: string; show: (answer: T) => ReactNode; once?: true };
  danger?: boolean;
  disabled?: boolean;
  size?: string;
  leave?: string;
  children: ReactNode;
}) {
  const {
    path,
    what,
    close,
    done = close,
    result,
    body,
    method,
    said,
    isFailed,
    ...dialog
  } = props;
  const { run, busy, problem } = useAction();
  const [answer, setAnswer] = useState<T | null>(null);
  const finish = (own: T | null) => {
    if (own === null) return;
    if (result) setAnswer(own);
    else done(own);
  };
  return (
    <ActionDialog
      {...dialog}
      {...(answer !== null && result && { title: result.title, children: result.show(answer) })}
      {...(answer !== null && result?.once && { stays: true, leave: 'I have stored it' })}
      what={what}
      opened
      close={close}
      hideAction={answer !== null}
      busy={busy}
      problem={problem}
      onAction={() =>
        void run<T>({
          ...{ path, what, body },
          ...(method && { method }),
          ...(said && { said }),
          ...(isFailed && { isFailed }),
        }).then(finish)
      }
    />
  );
}
