import { peopleRoutes } from './people-routes.ts';
import type { ConsoleRoute } from './route.ts';
import { sessionRoutes } from './session-routes.ts';
import { signInRoutes } from './sign-in-routes.ts';

/** Every route of the console's API. A test asks each of them in every role and scope. */
export const consoleRoutes: ConsoleRoute[] = [...signInRoutes, ...sessionRoutes, ...peopleRoutes];
