import { describeLog } from './storage-behaviour.js';
import { lmdbStage } from './storage-stage.js';

describeLog('a log in LMDB', () => lmdbStage());
