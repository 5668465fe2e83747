/* The floor under every question whether a tree has changed: each name is read and asked for its
 * facts once, less the folders that are passed over.
 *
 *     walk ROOT NAME...
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static long files;
static char **passed_over;

static int is_passed_over(const char *name) {
    for (char **known = passed_over; *known; known++)
        if (strcmp(*known, name) == 0) return 1;
    return 0;
}

static void walk(int folder) {
    DIR *entries = fdopendir(folder);
    if (!entries) return;
    for (struct dirent *entry; (entry = readdir(entries));) {
        struct stat facts;
        const char *name = entry->d_name;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || is_passed_over(name)) continue;
        if (fstatat(dirfd(entries), name, &facts, AT_SYMLINK_NOFOLLOW) != 0) continue;
        files += !S_ISDIR(facts.st_mode);
        if (S_ISDIR(facts.st_mode)) {
            int below = openat(dirfd(entries), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            if (below >= 0) walk(below);
        }
    }
    closedir(entries);
}

int main(int words, char **word) {
    if (words < 2) return 2;
    passed_over = word + 2;
    int root = open(word[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) return 1;
    walk(root);
    printf("%ld\n", files);
    return 0;
}
