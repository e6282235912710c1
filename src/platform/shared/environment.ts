/** A database, its credentials and its service belong to one environment. */
export type Environment = 'sandbox' | 'production';
