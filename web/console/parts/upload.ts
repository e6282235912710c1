/** The content of a file in base64, for a request. */
export async function base64Of(file: Blob): Promise<string> {
  const url = await new Promise<string>((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result));
    reader.onerror = () =>
      reject(new Error('Your browser cannot read this file. Choose another one.'));
    reader.readAsDataURL(file);
  });
  return url.slice(url.indexOf(',') + 1);
}

/** Redraws an image, no larger than these bounds. */
export async function shrinkImage(
  file: Blob,
  max: { width: number; height: number },
  type: 'image/png' | 'image/jpeg',
): Promise<Blob> {
  const image = await createImageBitmap(file).catch(() => {
    throw new Error('Your browser cannot read this image. Choose another file.');
  });
  const scale = Math.min(1, max.width / image.width, max.height / image.height);
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(image.width * scale));
  canvas.height = Math.max(1, Math.round(image.height * scale));
  const context = canvas.getContext('2d');
  if (!context) throw new Error('Your browser cannot convert this image. Choose another file.');
  context.imageSmoothingQuality = 'high';
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
  return await new Promise((resolve, reject) => {
    const done = (blob: Blob | null) =>
      blob
        ? resolve(blob)
        : reject(new Error('Your browser cannot convert this image. Choose another file.'));
    canvas.toBlob(done, type, 0.85);
  });
}
