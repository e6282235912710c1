import { Modal } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';

/**
 * A dialog. The library's own has a <header>, which is a second banner of the page for screen
 * readers.
 */
export function Dialog(props: {
  title: string;
  opened: boolean;
  close: () => void;
  size?: string;
  centered?: boolean;
  /** Whether it opens above another dialog. */
  above?: boolean;
  children: ReactNode;
}) {
  useFocusBack(props.opened);
  return (
    <Modal.Root
      opened={props.opened}
      onClose={props.close}
      size={props.size ?? 'md'}
      centered={props.centered ?? true}
      // The library locks scrolling with a <style> element, which our content security policy
      // refuses. The style sheet does it instead.
      lockScroll={false}
      transitionProps={{ duration: 150, transition: 'fade' }}
      {...(props.above && { zIndex: 400 })}
    >
      <Modal.Overlay />
      <Modal.Content>
        <div className="dialog-head">
          <Modal.Title>{props.title}</Modal.Title>
          <Modal.CloseButton aria-label="Close the dialog" />
        </div>
        <Modal.Body>{props.children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}

/**
 * Returns the focus to the element that had it before. The library does so only for a dialog that
 * stays mounted, and most of ours are gone when they close.
 */
function useFocusBack(opened: boolean): void {
  const opener = useRef<Element | null>(null);
  const wasOpened = useRef(false);
  if (opened && !wasOpened.current) opener.current = document.activeElement;
  wasOpened.current = opened;
  useEffect(() => {
    if (!opened) return;
    return () => {
      const { current } = opener;
      // Wait until the element of the dialog that has the focus is gone.
      setTimeout(() => {
        const isLost = document.activeElement === document.body;
        if (isLost && current instanceof HTMLElement && current.isConnected) current.focus();
      });
    };
  }, [opened]);
}
