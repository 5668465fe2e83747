/* Runs a command and writes down what it took: seconds, seconds of CPU, and the most memory. It is
 * small on purpose: a child's most memory begins with its parent's.
 *
 *     measure FILE FOLDER COMMAND...
 *
 * The command runs in the folder.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval t) {
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

int main(int words, char **word) {
    if (words < 4) return 2;
    struct timespec begin, end;
    struct rusage used;
    int status;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t child = fork();
    if (child == 0) {
        if (chdir(word[2]) == 0) execv(word[3], word + 3);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child) return 126;
    clock_gettime(CLOCK_MONOTONIC, &end);
    FILE *file = fopen(word[1], "w");
    if (!file) return 125;
    double wall = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    fprintf(file, "%.9f %.6f %ld\n", wall, seconds(used.ru_utime) + seconds(used.ru_stime), used.ru_maxrss * 1024);
    fclose(file);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
