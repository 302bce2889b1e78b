// Verifies one document with another implementation: node verify.mjs FILE rdfc|jcs CONTEXTS. No network.
import {readFileSync} from 'node:fs';
import {join} from 'node:path';
import jsigs from 'jsonld-signatures';
import {DataIntegrityProof} from '@digitalbazaar/data-integrity';
import * as rdfc from '@digitalbazaar/eddsa-rdfc-2022-cryptosuite';
import * as jcs from '@digitalbazaar/eddsa-jcs-2022-cryptosuite';

const [file, name, contexts] = process.argv.slice(2);
const read = path => JSON.parse(readFileSync(path, 'utf8'));
const bundled = {
  'https://www.w3.org/ns/credentials/v2': read(join(contexts, 'credentials-v2.json')),
  'https://purl.imsglobal.org/spec/ob/v3p0/context-3.0.3.json': read(join(contexts, 'ob-3.0.3.json')),
};
const documentLoader = async url => {
  if(bundled[url]) {
    return {documentUrl: url, document: bundled[url]};
  }
  const [did, key] = url.split('#');
  const multibase = did.replace('did:key:', '');
  const method = `${did}#${multibase}`;
  const entry = {
    '@context': 'https://w3id.org/security/multikey/v1', id: method, type: 'Multikey', controller: did,
    publicKeyMultibase: multibase,
  };
  if(did.startsWith('did:key:') && key) {
    return {documentUrl: url, document: entry};
  }
  if(did.startsWith('did:key:')) {
    const document = {'@context': 'https://www.w3.org/ns/did/v1', id: did, assertionMethod: [method]};
    return {documentUrl: url, document};
  }
  throw new Error(`not bundled: ${url}`);
};
const made = name === 'jcs' ? jcs.createVerifyCryptosuite() : rdfc.createVerifyCryptosuite ? rdfc.createVerifyCryptosuite() : rdfc.cryptosuite;
const suite = new DataIntegrityProof({cryptosuite: made});
const purpose = new jsigs.purposes.AssertionProofPurpose();
const result = await jsigs.verify(read(file), {suite, purpose, documentLoader});
console.log(result.verified ? 'verified' : `refused: ${JSON.stringify(result.error, null, 1)?.slice(0, 1500)}`);
