/* The floor under every client of a blob service: a list of requests, so many at a time, each
 * thread on a connection of its own that is kept, and nothing else: no checks, no retries.
 *
 *     raw PORT PARALLEL LIST
 *
 * A line of the list is METHOD, TARGET, FILE, OFFSET and LENGTH with tabs between: a part of a
 * file that is sent, or where the answer's body goes. A line `-` waits for all before it.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIECE = 256 << 10, HEAD = 16 << 10 };

struct request {
    const char *method, *target, *file;
    long long offset, length;
};

struct connection {
    int socket;
    size_t begin, end;
    char bytes[PIECE];
};

static struct request *requests;
static size_t count, stage_end;
static atomic_size_t next_one;
static int port;

static _Noreturn void fail(const char *format, ...) {
    va_list words;
    va_start(words, format);
    fprintf(stderr, "raw: ");
    vfprintf(stderr, format, words);
    fprintf(stderr, "\n");
    exit(1);
}

static void send_all(int socket, const char *bytes, size_t many) {
    while (many > 0) {
        ssize_t sent = send(socket, bytes, many, MSG_NOSIGNAL);
        if (sent < 0) fail("send: %s", strerror(errno));
        bytes += sent;
        many -= (size_t)sent;
    }
}

static void fill(struct connection *c) {
    ssize_t got = recv(c->socket, c->bytes, sizeof c->bytes, 0);
    if (got <= 0) fail("recv: %s", got == 0 ? "closed" : strerror(errno));
    c->begin = 0;
    c->end = (size_t)got;
}

/* One line, less its end. */
static char *line(struct connection *c, char *text, size_t most) {
    size_t many = 0;
    for (;;) {
        if (c->begin == c->end) fill(c);
        char byte = c->bytes[c->begin++];
        if (byte == '\n') break;
        if (byte != '\r' && many + 1 < most) text[many++] = byte;
    }
    text[many] = 0;
    return text;
}

static void take(struct connection *c, long long many, int file, long long offset) {
    while (many > 0) {
        if (c->begin == c->end) fill(c);
        size_t part = c->end - c->begin;
        if ((long long)part > many) part = (size_t)many;
        if (file >= 0 && pwrite(file, c->bytes + c->begin, part, offset) != (ssize_t)part) fail("write: %s", strerror(errno));
        c->begin += part;
        offset += (long long)part;
        many -= (long long)part;
    }
}

static void answer(struct connection *c, const struct request *r) {
    char text[HEAD];
    long long length = 0;
    int chunked = 0, status = 0;
    sscanf(line(c, text, sizeof text), "HTTP/1.1 %d", &status);
    while (*line(c, text, sizeof text)) {
        if (strncasecmp(text, "content-length:", 15) == 0) length = atoll(text + 15);
        if (strncasecmp(text, "transfer-encoding:", 18) == 0) chunked = 1;
    }
    if (status / 100 != 2) fail("%s %.200s: %d", r->method, r->target, status);
    int file = -1;
    if (strcmp(r->method, "GET") == 0) {
        file = open(r->file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        if (file < 0) fail("%s: %s", r->file, strerror(errno));
    }
    long long offset = r->offset;
    while (chunked && (length = strtoll(line(c, text, sizeof text), NULL, 16)) > 0) {
        take(c, length, file, offset);
        offset += length;
        line(c, text, sizeof text);
    }
    if (chunked) line(c, text, sizeof text);
    if (!chunked) take(c, length, file, offset);
    if (file >= 0) close(file);
}

static void ask(struct connection *c, const struct request *r) {
    char head[HEAD];
    int puts = strcmp(r->method, "PUT") == 0;
    int many = snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nx-ms-version: 2022-11-02\r\n", r->method, r->target, port);
    if (puts) many += snprintf(head + many, sizeof head - (size_t)many, "Content-Length: %lld\r\n%s", r->length, strstr(r->target, "comp=") ? "" : "x-ms-blob-type: BlockBlob\r\n");
    else many += snprintf(head + many, sizeof head - (size_t)many, "x-ms-range: bytes=%lld-%lld\r\n", r->offset, r->offset + r->length - 1);
    many += snprintf(head + many, sizeof head - (size_t)many, "\r\n");
    if (many >= HEAD) fail("a target is too long");
    send_all(c->socket, head, (size_t)many);
    if (!puts) return;
    char piece[PIECE];
    int file = open(r->file, O_RDONLY | O_CLOEXEC);
    if (file < 0) fail("%s: %s", r->file, strerror(errno));
    for (long long done = 0; done < r->length;) {
        size_t part = r->length - done < PIECE ? (size_t)(r->length - done) : PIECE;
        ssize_t got = pread(file, piece, part, r->offset + done);
        if (got <= 0) fail("%s: %s", r->file, got == 0 ? "too short" : strerror(errno));
        send_all(c->socket, piece, (size_t)got);
        done += got;
    }
    close(file);
}

static void *work(void *connection) {
    struct connection *c = connection;
    for (;;) {
        size_t at = atomic_fetch_add(&next_one, 1);
        if (at >= stage_end) return NULL;
        ask(c, &requests[at]);
        answer(c, &requests[at]);
    }
}

static void read_list(const char *path) {
    FILE *file = fopen(path, "r");
    if (!file) fail("%s: %s", path, strerror(errno));
    char *text = NULL;
    size_t room = 0;
    while (getline(&text, &room, file) > 0) {
        text[strcspn(text, "\n")] = 0;
        char *rest = strdup(text);
        if (count % 1024 == 0) requests = realloc(requests, (count + 1024) * sizeof *requests);
        struct request *r = &requests[count++];
        *r = (struct request){ 0 };
        if (strcmp(rest, "-") == 0) continue;
        r->method = strsep(&rest, "\t");
        r->target = strsep(&rest, "\t");
        r->file = strsep(&rest, "\t");
        if (!rest || sscanf(rest, "%lld\t%lld", &r->offset, &r->length) != 2) fail("not a request: %s", text);
    }
    free(text);
    fclose(file);
}

int main(int words, char **word) {
    if (words != 4) fail("PORT PARALLEL LIST");
    port = atoi(word[1]);
    int parallel = atoi(word[2]);
    read_list(word[3]);
    struct connection *connections = calloc((size_t)parallel, sizeof *connections);
    pthread_t *threads = calloc((size_t)parallel, sizeof *threads);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    for (int i = 0; i < parallel; i++) {
        int on = 1, s = connections[i].socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(s, (struct sockaddr *)&address, sizeof address) != 0) fail("connect: %s", strerror(errno));
        setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    for (size_t begin = 0; begin < count; begin = stage_end + 1) {
        for (stage_end = begin; stage_end < count && requests[stage_end].method; stage_end++) {}
        atomic_store(&next_one, begin);
        for (int i = 0; i < parallel; i++) pthread_create(&threads[i], NULL, work, &connections[i]);
        for (int i = 0; i < parallel; i++) pthread_join(threads[i], NULL);
    }
    return 0;
}
