import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { reasonToSkipBrowser } from '../support/chromium.js';
import { DEADLINE_MS } from '../support/deadline.js';
import { McpClient } from '../support/mcp-client.js';
import { McpUpstream } from '../support/mcp-upstream.js';
import { useStage } from './stage.js';

const upstream = await McpUpstream.start();
after(() => upstream.stop());

describe('the console of a front of MCP servers', { skip: reasonToSkipBrowser() ?? false }, () => {
  const stage = useStage({ flags: ['--mcp', `/mcp=${upstream.url}`, '--mcp', `/other=${upstream.url}`] });

  it('shows how each server is used, and moves with it', async () => {
    const page = await stage.browser.newPage();
    page.setDefaultTimeout(DEADLINE_MS);
    await page.goto(`http://127.0.0.1:${stage.proxy.port}/console`);
    const servers = page.getByRole('region', { name: 'MCP servers' });
    const line = (path: string) => servers.getByRole('row').filter({ hasText: path });
    await line('/other').waitFor();
    assert.deepEqual(await line('/mcp').getByRole('cell').allTextContents(), ['0', '0', '0', '0']);
    const client = await McpClient.open(stage.broker.port);
    const call = await client.call(1);
    const there = await upstream.nextCall();
    // Sessions, calls under way, readers, refused resumes.
    await page.getByRole('row', { name: '/mcp 1 1 1 0' }).waitFor();
    const { SCREENSHOTS: folder } = process.env;
    for (const colorScheme of folder === undefined ? [] : (['light', 'dark'] as const)) {
      await page.emulateMedia({ colorScheme });
      await page.screenshot({ path: `${folder}/mcp-${colorScheme}.png` });
    }
    there.json({});
    await call.untilEnded();
    await page.getByRole('row', { name: '/mcp 1 0 0 0' }).waitFor();
    await page.setViewportSize({ width: 340, height: 700 });
    assert.equal(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), 0);
    await page.close();
  });
});
