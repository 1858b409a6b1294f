/**
 * JSON as editors write it: comments and commas after the last member are replaced by spaces, so that positions stay the same. Texts
 * are left as they are.
 */
export function plainJsonOf(text: string): string {
  const withoutComments = text.replaceAll(commentOrText, (found) => (found.startsWith('"') ? found : blank(found)));
  return withoutComments.replaceAll(lastCommaOrText, (found) => (found.startsWith('"') ? found : blank(found)));
}

const commentOrText = /"(?:\\.|[^"\\])*"|\/\/[^\n]*|\/\*[^]*?\*\//g;
const lastCommaOrText = /"(?:\\.|[^"\\])*"|,(?=\s*[}\]])/g;

function blank(text: string): string {
  return text.replaceAll(/[^\n]/g, " ");
}
