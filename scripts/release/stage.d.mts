export function stagePackages(folder: string): void;
