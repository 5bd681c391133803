/**
 * The document of the console. Everything in it that is not the same for everybody is put there by the page's modules,
 * as text. Addresses are relative, so that it works behind a proxy that has a path in front.
 */
export function consoleDocument({
  entry,
  preloads,
  needsToken,
}: {
  entry: string;
  preloads: readonly string[];
  /** Whether nothing is to be had here without a token. */
  needsToken: boolean;
}): string {
  const links = preloads.map((href) => `<link rel="modulepreload" href="${href}">`).join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Gapless</title>
<link rel="icon" href="console/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="console/style.css">
${links}
<script type="module" src="${entry}"></script>
</head>
<body data-token="${needsToken ? 'needed' : 'none'}">
<a class="skip" href="#content">Skip to the content</a>
<header class="top">
<a class="brand" href="#/"><img src="console/icon.svg" alt="" width="24" height="24"><span>Gapless</span></a>
<div class="top-end" id="session"></div>
</header>
<div class="notice" id="notice" role="status"></div>
<main class="content" id="content" tabindex="-1"></main>
<noscript><p class="empty">The console needs JavaScript.</p></noscript>
</body>
</html>
`;
}
