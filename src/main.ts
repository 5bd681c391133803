#!/usr/bin/env node
import { run } from './cli/run.js';

process.exit(await run(process.argv.slice(2)));
