/**
 * The page at `/`: follows one stream with the browser's own EventSource, and shows what a cut and a refusal
 * look like. Ten lines of it are all that a page needs.
 */

export const WATCH_PAGE_HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-cache',
  'Content-Security-Policy':
    "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; frame-ancestors 'none'",
};

export const WATCH_PAGE = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>Gapless</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; }
  form { display: flex; gap: .5rem; margin: 1rem 0; }
  input { flex: 1; font: inherit; padding: .3rem .6rem; }
  button { font: inherit; padding: .3rem .9rem; }
  ol { list-style: none; padding: 0; font: 14px/1.6 ui-monospace, monospace; }
  li { border-bottom: 1px solid color-mix(in srgb, currentColor 15%, transparent); overflow-wrap: anywhere; }
  .note { opacity: .7; }
</style>
<h1>Gapless</h1>
<p>Stream <b id="name"></b>: <span id="state" role="status">connecting</span></p>
<form><input name="data" aria-label="Event" placeholder="Something to publish" autocomplete="off"><button>Publish</button></form>
<ol id="events"></ol>
<script>
  const name = new URLSearchParams(location.search).get('stream') ?? 'demo';
  const url = '/v1/streams/' + encodeURIComponent(name);
  const line = (text, note) => {
    const item = document.createElement('li');
    item.textContent = text;
    if (note) item.className = 'note';
    document.getElementById('events').prepend(item);
  };
  const say = (text) => { document.getElementById('state').textContent = text; };
  document.getElementById('name').textContent = name;

  const source = new EventSource(url + '?cursor=earliest&on_unavailable=event');
  source.onopen = () => say('connected');
  source.onmessage = (event) => line(event.lastEventId + '  ' + event.data);
  source.addEventListener('resume_unavailable', (event) => {
    const { reason, cursor, earliest, head } = JSON.parse(event.data);
    line('cannot resume after ' + cursor + ' (' + reason + '); going on after ' + event.lastEventId, true);
  });
  for (const end of ['closed', 'deleted']) {
    source.addEventListener('stream_' + end, () => line('the stream was ' + end, true));
  }
  source.onerror = () => say(source.readyState === 2 ? 'ended' : 'broken off, coming back');

  document.forms[0].onsubmit = (event) => {
    event.preventDefault();
    const input = event.target.elements.data;
    fetch(url, { method: 'POST', headers: { 'Content-Type': 'text/plain' }, body: input.value });
    input.value = '';
  };
</script>
</html>
`;
