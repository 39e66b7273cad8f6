/* Memory between tiles, pushed and pulled back, and within one. */
#include "octo.h"

enum { BYTES = 700001 };

/* The same place on every tile, since all load the same program. */
static unsigned char buffer[BYTES], result[BYTES];
static simple_signal arrived, sent;

static void notice(void *signal)
{
    simple_signal_signal(signal);
}

/* On the other tile: changes what has arrived and notifies the origin. */
static void change(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < BYTES; i++)
        buffer[i] ^= 0x5a;
    simple_ilet back;
    simple_ilet_init(&back, notice, &arrived);
    dispatch_claim_send_reply(&back);
}

static void local(void)
{
    syscall_future future;
    if (sync_dma_transfer(result, buffer, BYTES) != 0 || result[BYTES - 1] != buffer[BYTES - 1])
        shutdown(20);
    if (sync_dma_transfer(result + 7, result, BYTES - 7) != 0)
        shutdown(21);
    for (unsigned i = 7; i < BYTES; i++)
        if (result[i] != buffer[i - 7])
            shutdown(22);
    if (sync_dma_memset(result, 0x11, BYTES) != 0 || result[BYTES / 2] != 0x11)
        shutdown(23);
    syscall_future_init(&future);
    if (async_ldma_copy(result, buffer, BYTES, &future) != 0 || syscall_future_wait(&future) != 0 || result[5] != buffer[5])
        shutdown(24);
    simple_ilet then;
    simple_signal_init(&sent, 1);
    simple_ilet_init(&then, notice, &sent);
    if (async_ldma_copy_ilet(result, buffer + 1, BYTES - 1, &then) != 0)
        shutdown(25);
    simple_signal_wait(&sent);
    if (result[5] != buffer[6])
        shutdown(26);
    /* An i-let behind a future that is complete, and two behind one that will be. */
    simple_signal_init(&sent, 3);
    if (syscall_future_on_completion(&future, &then) != 0)
        shutdown(27);
    syscall_future_init(&future);
    if (syscall_future_on_completion(&future, &then) != 0 || syscall_future_on_completion(&future, &then) != 0)
        shutdown(28);
    if (simple_signal_get_counter(&sent) < 2)
        shutdown(29);
    if (async_ldma_copy(result, buffer, BYTES, &future) != 0)
        shutdown(30);
    simple_signal_wait(&sent);
}

void main_ilet(claim_t claim)
{
    (void)claim;
    for (unsigned i = 0; i < BYTES; i++)
        buffer[i] = (unsigned char)(i * 7 + i / 251);
    local();
    tile_id_t other = get_compute_tile_count() > 1 ? 1 : 0;
    if (other == 0 && get_tile_core_count() == 1) {
        octo_printf("one tile of one core: within the tile only\n");
        shutdown(0);
    }
    invade_future future;
    proxy_invade(other, &future, 1);
    proxy_claim_t proxy = invade_future_force(&future);
    if (!proxy)
        shutdown(1);
    if (other) {
        /* An address that names this tile is none of the other's. */
        if (proxy_push_dma(proxy, buffer, get_global_address(buffer), BYTES, NULL, NULL) != -1)
            shutdown(2);
        if (get_tile_id_from_ptr(get_global_address_for_tile(buffer, other)) != other)
            shutdown(3);
    }
    simple_ilet here, there;
    simple_signal_init(&sent, 1);
    simple_signal_init(&arrived, 1);
    simple_ilet_init(&here, notice, &sent);
    simple_ilet_init(&there, change, NULL);
    void *destination = get_global_address_for_tile(buffer, other);
    if (proxy_push_dma(proxy, buffer, destination, BYTES, &here, &there) != 0)
        shutdown(4);
    simple_signal_wait(&sent);
    simple_signal_wait(&arrived);
    simple_signal_init(&arrived, 1);
    simple_ilet_init(&here, notice, &arrived);
    if (proxy_claim_pull_dma(proxy, result, destination, BYTES, &here, NULL) != 0)
        shutdown(5);
    simple_signal_wait(&arrived);
    for (unsigned i = 0; i < BYTES; i++)
        if (result[i] != (unsigned char)((i * 7 + i / 251) ^ 0x5a))
            shutdown(6);
    octo_printf("%d bytes to tile %u and back\n", BYTES, other);
    shutdown(proxy_retreat_sync(proxy) == 0 ? 0 : 7);
}
