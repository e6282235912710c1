import { isDeepStrictEqual } from 'node:util';
import type { Handle } from '#platform/database/database.ts';
import { isUuid } from '#platform/shared/uuid.ts';
import { OperatorError } from '#record/actions/operate.ts';
import type { Access } from './manage-people.ts';
import { operatorRoles } from './permission.ts';
import { listKnownMerchants } from './person.sql.ts';

const nameMax = 100;

/**
 * The characters that an e-mail address may have without quotation marks, and letters of other
 * scripts. `$`, "`" and `|` are allowed by the standard but not used in practice, and dangerous in
 * a copied command.
 */
const emailPattern =
  /^[^\s@\p{C}()<>[\]:;,"\\$`|]{1,64}@[\p{L}\p{M}\p{N}-]+(\.[\p{L}\p{M}\p{N}-]+)+$/u;

/**
 * Folds only A to Z to lower case. Folding the other letters that Unicode folds to ASCII, such as
 * the Kelvin sign U+212A, would turn two e-mail addresses into one.
 */
export const foldAddress = (address: string) =>
  address.replace(/[A-Z]/g, (letter) => letter.toLowerCase());

export function checkEmail(text: string): string {
  const email = foldAddress(text.trim());
  if (email.length > 254 || !emailPattern.test(email)) {
    throw new OperatorError(`"${text}" is not an e-mail address.`);
  }
  return email;
}

export function checkName(text: string): string {
  const name = text.trim();
  if (name === '' || name.length > nameMax || /\p{C}/u.test(name)) {
    throw new OperatorError(`A name has 1 to ${nameMax} characters, without control characters.`);
  }
  return name;
}

export function checkAccess({ roles, merchant_ids }: Access): Access {
  const unknown = roles.filter((role) => !operatorRoles.includes(role as never));
  if (unknown.length > 0 || roles.length === 0) {
    const found = unknown.length > 0 ? `There is no role "${unknown.join(', ')}". ` : '';
    throw new OperatorError(`${found}Give one or more of ${operatorRoles.join(', ')}.`);
  }
  if (merchant_ids?.length === 0)
    throw new OperatorError('Name at least one merchant, or give access to all of them.');
  return {
    roles: operatorRoles.filter((role) => roles.includes(role)),
    merchant_ids: merchant_ids && [...new Set(merchant_ids.map((id) => id.toLowerCase()))].sort(),
  };
}

export async function checkMerchants(db: Handle, ids: string[] | null): Promise<void> {
  if (ids === null) return;
  const known = await listKnownMerchants(db, ids.filter(isUuid));
  const unknown = ids.filter((id) => !known.includes(id));
  if (unknown.length > 0) throw new OperatorError(`There is no merchant ${unknown.join(', ')}.`);
}

/** The access that an administrator read. If the name is absent, it is not compared. */
export type ReadAccess = Access & { name?: string };

/** Whether a person's name and access are what an administrator read. */
export const isAsRead = (
  was: ReadAccess,
  { name, roles, merchant_ids }: Access & { name: string },
): boolean =>
  isDeepStrictEqual([was.name ?? name, was.roles, was.merchant_ids], [name, roles, merchant_ids]);
