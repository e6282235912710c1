import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

/**
 * A dialog. The library's own has a <header>, which is a second banner of the page for screen readers.
 */
export function Dialog(props: {
  title: string;
  opened: boolean;
  close: () => void;
  size?: string;
  centered?: boolean;
  /** Above another dialog. */
  above?: boolean;
  children: ReactNode;
}) {
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
