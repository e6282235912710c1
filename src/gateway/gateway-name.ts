declare const isName: unique symbol;

/**
 * The name of a gateway in the settings. A row keeps the name of the gateway that holds its
 * payment, and every request for the payment goes to that one. Only `gatewayName` turns a text into
 * a name.
 */
export type GatewayName = string & { readonly [isName]: true };

/** The name of the only gateway of a service whose settings give no names. */
export const mainGateway = 'main' as GatewayName;

/**
 * The text as a name, or null if it is not a valid one. Names occur in settings and in URLs.
 */
export const gatewayName = (text: string): GatewayName | null =>
  /^[a-z][a-z0-9]{0,19}$/.test(text) ? (text as GatewayName) : null;

/** A merchant's choice for new checkouts. */
export type ChosenGateways = {
  gateway: GatewayName | null;
  second_gateway: GatewayName | null;
};
