import { Modal } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';

/**
 * A dialog. The library's own has a <header>, which screen readers take for a second banner of the
 * page.
 */
export function Dialog(props: {
  title: string;
  opened: boolean;
  close: () => void;
  size?: string;
  centered?: boolean;
  /** Whether only its own button closes it, and neither Escape nor a click outside. */
  stays?: boolean;
  /** Whether it opens above another dialog. */
  above?: boolean;
  children: ReactNode;
}) {
  useFocusBack(props.opened);
  const isOnTop = useStack(props.opened);
  return (
    <Modal.Root
      opened={props.opened}
      // On Escape, the library asks every open dialog to close. Only the topmost one does.
      onClose={() => isOnTop() && props.close()}
      closeOnEscape={!props.stays}
      closeOnClickOutside={!props.stays}
      size={props.size ?? 'md'}
      centered={props.centered ?? true}
      // The library locks scrolling with a <style> element, which our content security policy
      // refuses. The style sheet does it instead.
      lockScroll={false}
      returnFocus={false}
      transitionProps={{ duration: 150, transition: 'fade' }}
      {...(props.above && { zIndex: 400 })}
    >
      <Modal.Overlay />
      <Modal.Content inert={!props.opened}>
        <div className="dialog-head">
          <Modal.Title>{props.title}</Modal.Title>
          {!props.stays && <Modal.CloseButton aria-label="Close the dialog" />}
        </div>
        <Modal.Body>{props.children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

const openDialogs: object[] = [];

/** Returns a function that tells whether this dialog was opened last. */
function useStack(opened: boolean): () => boolean {
  const self = useRef({}).current;
  useEffect(() => {
    if (!opened) return;
    openDialogs.push(self);
    return () => {
      // The dialog below receives the same Escape after this one, and must not be on top yet.
      setTimeout(() => openDialogs.splice(openDialogs.indexOf(self), 1));
    };
  }, [opened, self]);
  return () => openDialogs.at(-1) === self;
}

let lastFocused: EventTarget | null = null;
document.addEventListener('focusin', ({ target }) => (lastFocused = target));

/**
 * Returns the focus to the element that had it before a dialog or a busy button took it. The
 * library does so only for a dialog that stays mounted, and most of ours are removed when they
 * close.
 */
export function useFocusBack(isAway: boolean): void {
  const from = useRef<EventTarget | null>(null);
  const wasAway = useRef(false);
  if (isAway && !wasAway.current) {
    const active = document.activeElement;
    // A busy button is disabled, and loses the focus before the passkey is asked for.
    from.current = active === document.body ? lastFocused : active;
  }
  wasAway.current = isAway;
  useEffect(() => {
    if (!isAway) return;
    // Wait until a removed dialog has left the document.
    return () => void setTimeout(() => focusBack(from.current));
  }, [isAway]);
}

/** Focuses the page if the element is gone: an approved row, for example, leaves its list. */
function focusBack(to: EventTarget | null): void {
  const active = document.activeElement ?? document.body;
  const main = document.getElementById('main');
  // The focus is lost if it is in a dialog that is fading out, which is inert, or on the page
  // itself, because the focused button of the dialog disappeared first.
  const isLost = active === document.body || active === main || active.closest('[inert]') !== null;
  if (!isLost) return;
  const place = to instanceof HTMLElement && to.isConnected ? to : main;
  place?.focus({ preventScroll: true });
}
