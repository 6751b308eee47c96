// Prints what libicu's public functions say about the root collation. See README.md beside this file.
//   icu-root elements   prints the collation elements of every code point and contraction, and combining classes
//   icu-root keys       reads a string per line, as UTF-16 units of four hexadecimal digits, and prints its sort key
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unicode/ucol.h>
#include <unicode/ucoleitr.h>
#include <unicode/unorm2.h>
#include <unicode/uset.h>
#include <unicode/utf16.h>
#include <unicode/uvernum.h>

enum { unitsMax = 1 << 16, codePointMax = 0x10ffff, commonWeight = 0x500 };

static UErrorCode status = U_ZERO_ERROR;

static void check(const char *what) {
  if (U_FAILURE(status)) {
    fprintf(stderr, "%s: %s\n", what, u_errorName(status));
    exit(1);
  }
}

static int isSurrogate(UChar32 c) { return c >= 0xd800 && c <= 0xdfff; }

/** A collation element. `secondary` and `tertiary` have 16 bits. */
typedef struct { uint32_t primary, secondary, tertiary; } Element;

/** Returns the elements of a text in a buffer that the next call overwrites. */
static const Element *elementsOf(UCollationElements *iterator, const UChar *text, int32_t length, int *count) {
  static Element found[100];
  ucol_setText(iterator, text, length, &status);
  *count = 0;
  int32_t order = ucol_next(iterator, &status);
  while (order != UCOL_NULLORDER) {
    // ICU divides an element of 64 bits into two of 32. The second one, which has both bits of 0xc0, is left out when
    // it is zero.
    uint32_t first = (uint32_t)order;
    uint32_t second = 0;
    order = ucol_next(iterator, &status);
    if (order != UCOL_NULLORDER && (order & 0xc0) == 0xc0) {
      second = (uint32_t)order & ~0xc0u;
      order = ucol_next(iterator, &status);
    }
    found[(*count)++] = (Element){
      .primary = (first & 0xffff0000) | second >> 16,
      .secondary = (first & 0xff00) | (second >> 8 & 0xff),
      .tertiary = (first & 0xff) << 8 | (second & 0xff),
    };
  }
  check("ucol_next");
  return found;
}

/** Prints the elements of a text as `primary.secondary.tertiary` in hexadecimal. */
static void printElements(UCollationElements *iterator, const UChar *text, int32_t length) {
  int count;
  const Element *elements = elementsOf(iterator, text, length, &count);
  for (int i = 0; i < count; i++) {
    printf(" %x.%x.%x", elements[i].primary, elements[i].secondary, elements[i].tertiary);
  }
  printf("\n");
}

static void printCodePoints(UCollationElements *iterator) {
  for (UChar32 c = 0; c <= codePointMax; c++) {
    if (isSurrogate(c)) continue;
    UChar text[2];
    int32_t length = 0;
    U16_APPEND_UNSAFE(text, length, c);
    printf("code-point %x", c);
    printElements(iterator, text, length);
  }
}

/** Prefixes, which change the elements of the character after them, are included as contractions. */
static void printContractions(UCollator *collator, UCollationElements *iterator) {
  USet *contractions = uset_openEmpty();
  ucol_getContractionsAndExpansions(collator, contractions, NULL, 1, &status);
  check("ucol_getContractionsAndExpansions");
  for (int32_t i = 0; i < uset_getItemCount(contractions); i++) {
    UChar text[100];
    UChar32 start, end;
    int32_t length = uset_getItem(contractions, i, &start, &end, text, 100, &status);
    check("uset_getItem");
    if (length < 2) continue;
    printf("contraction ");
    for (int32_t at = 0; at < length;) {
      UChar32 c;
      U16_NEXT(text, at, length, c);
      printf(at < length ? "%x-" : "%x", c);
    }
    printElements(iterator, text, length);
  }
  uset_close(contractions);
}

/** Prints the canonical combining classes of the first and last character of each canonical decomposition. */
static void printCombiningClasses(void) {
  const UNormalizer2 *nfd = unorm2_getNFDInstance(&status);
  for (UChar32 c = 0; c <= codePointMax; c++) {
    UChar text[100];
    UErrorCode ignored = U_ZERO_ERROR;
    int32_t length = unorm2_getDecomposition(nfd, c, text, 100, &ignored);
    UChar32 first = c, last = c;
    if (length > 0) {
      U16_GET(text, 0, 0, length, first);
      int32_t at = length;
      U16_PREV(text, 0, at, last);
    }
    int leading = unorm2_getCombiningClass(nfd, first);
    int trailing = unorm2_getCombiningClass(nfd, last);
    if (leading != 0) printf("combining-class %x %d %d\n", c, leading, trailing);
  }
}

/** Prints the lead bytes of primary weights that a sort key contains once for several equal ones in a row. */
static void printCompressibleBytes(UCollator *collator, UCollationElements *iterator) {
  char isKnown[256] = {0};
  for (UChar32 c = 1; c <= codePointMax; c++) {
    if (isSurrogate(c)) continue;
    UChar text[4];
    int32_t length = 0;
    int count;
    U16_APPEND_UNSAFE(text, length, c);
    const Element *elements = elementsOf(iterator, text, length, &count);
    uint32_t primary = elements[0].primary;
    int lead = (int)(primary >> 24);
    // Common weights on the other levels add no byte when they are repeated. Primary weights of one byte show nothing.
    int isCommon = count == 1 && elements[0].secondary == commonWeight && elements[0].tertiary == commonWeight;
    if (!isCommon || (primary & 0xffffff) == 0 || isKnown[lead]) continue;
    isKnown[lead] = 1;
    uint8_t once[100], twice[100];
    U16_APPEND_UNSAFE(text, length, c);
    int32_t added = -ucol_getSortKey(collator, text, length / 2, once, sizeof once);
    added += ucol_getSortKey(collator, text, length, twice, sizeof twice);
    int bytes = primary & 0xff ? 4 : primary & 0xff00 ? 3 : 2;
    if (added < bytes) printf("compressible %x\n", lead);
  }
}

static void printElementsOfAll(UCollator *collator) {
  UVersionInfo version;
  char text[U_MAX_VERSION_STRING_LENGTH];
  printf("icu %s\nunicode %s\n", U_ICU_VERSION, U_UNICODE_VERSION);
  ucol_getUCAVersion(collator, version);
  u_versionToString(version, text);
  printf("uca %s\n", text);
  ucol_getVersion(collator, version);
  u_versionToString(version, text);
  printf("collator %s\n", text);
  UCollationElements *iterator = ucol_openElements(collator, u"", 0, &status);
  check("ucol_openElements");
  printCompressibleBytes(collator, iterator);
  printCombiningClasses();
  printCodePoints(iterator);
  printContractions(collator, iterator);
  ucol_closeElements(iterator);
}

static void printSortKeys(UCollator *collator) {
  static char line[4 * unitsMax + 2];
  static UChar text[unitsMax];
  static uint8_t key[40 * unitsMax];
  while (fgets(line, sizeof line, stdin)) {
    int32_t length = 0;
    for (unsigned unit; sscanf(line + 4 * length, "%4x", &unit) == 1; length++) text[length] = (UChar)unit;
    int32_t keyLength = ucol_getSortKey(collator, text, length, key, sizeof key);
    for (int32_t i = 0; i < keyLength; i++) printf("%02x", key[i]);
    printf("\n");
  }
}

int main(int count, char **arguments) {
  UCollator *collator = ucol_open("", &status);
  check("ucol_open");
  if (count == 2 && strcmp(arguments[1], "elements") == 0) printElementsOfAll(collator);
  else if (count == 2 && strcmp(arguments[1], "keys") == 0) printSortKeys(collator);
  else {
    fprintf(stderr, "usage: icu-root elements|keys\n");
    return 2;
  }
  ucol_close(collator);
  return 0;
}
