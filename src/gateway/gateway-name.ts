declare const isName: unique symbol;

/**
 * The name of a gateway in the settings. A row keeps the name of the gateway that holds its payment,
 * and every request for the payment goes to that one. Only `gatewayName` makes a name of a text.
 */
export type GatewayName = string & { readonly [isName]: true };

/** The name of the one gateway of a service whose settings name none. */
export const mainGateway = 'main' as GatewayName;

/** The name that a text is, or null. Names are parts of settings and of addresses. */
export const gatewayName = (text: string): GatewayName | null =>
  /^[a-z][a-z0-9]{0,19}$/.test(text) ? (text as GatewayName) : null;

/** A merchant's choice for new checkouts. */
export type ChosenGateways = {
  gateway: GatewayName | null;
  second_gateway: GatewayName | null;
};
