/** The path of a logo on the pages' own host, by its SHA-256. The page's script uses it too. */
export const logoPath = (logo: string) => `/pay/logos/${logo}.png`;
