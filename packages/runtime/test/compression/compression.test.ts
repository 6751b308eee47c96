import { MemoryCompression } from '../../src/compression/compression-memory.ts'
import { compressionSuite } from './compression-suite.ts'
import { ZlibCompression } from '../../src/compression/compression-zlib.ts'

compressionSuite('zlib', () => new ZlibCompression())
compressionSuite('memory', () => new MemoryCompression())
