/* Layers of epolls, each watching all below it: how many ways a wake-up may go is limited, wherever the last one is added. */
#include "t.h"
#include <sys/epoll.h>
#include <sys/eventfd.h>
enum { LAYERS = 4, MOST = 30 };
static int layer[LAYERS][MOST];
static int add(int outer, int inner)
{
	struct epoll_event e = {EPOLLIN, {0}};
	return epoll_ctl(outer, EPOLL_CTL_ADD, inner, &e);
}
/* What the first add that is refused returns, and how many were not. */
static void fill(const char *what, int above, int inner, int most)
{
	int count = 0, refused = 0;
	for (int j = 0; j < most && !refused; j++) {
		if (add(layer[above][j], inner) < 0)
			refused = errno;
		else
			count++;
	}
	say("%s: %d, %s\n", what, count, refused ? t_errno(refused) : "none refused");
}
static void close_all(void)
{
	for (int i = 0; i < LAYERS; i++)
		for (int j = 0; j < MOST; j++)
			if (layer[i][j])
				close(layer[i][j]), layer[i][j] = 0;
}
static void build(int layers, int most)
{
	close_all();
	for (int i = 0; i < layers; i++)
		for (int j = 0; j < most; j++)
			layer[i][j] = must(epoll_create1(EPOLL_CLOEXEC));
	for (int i = 1; i < layers; i++)
		for (int j = 0; j < most; j++)
			for (int k = 0; k < most; k++)
				must(add(layer[i][j], layer[i - 1][k]));
}
int main(void)
{
	int bottom = must(eventfd(0, EFD_NONBLOCK));
	uint64_t one = 1;
	build(4, MOST);
	fill("four layers", 0, bottom, MOST);
	build(2, MOST);
	fill("two layers", 0, bottom, MOST);
	R(write(bottom, &one, 8));
	struct epoll_event e;
	R(epoll_wait(layer[1][0], &e, 1, 0));
	must(read(bottom, &one, 8));
	build(3, 5);
	fill("three layers", 0, bottom, 5);
	/* From above: the way is there already, and is led on. */
	close_all();
	for (int i = 0; i < 3; i++)
		for (int j = 0; j < 20; j++)
			layer[i][j] = must(epoll_create1(EPOLL_CLOEXEC));
	for (int j = 0; j < 20; j++)
		must(add(layer[0][j], bottom));
	for (int k = 0; k < 20; k++)
		must(add(layer[1][0], layer[0][k]));
	fill("on top", 2, layer[1][0], 20);
	/* Nobody watches them: as many as there are. */
	close_all();
	for (int j = 0; j < MOST; j++)
		layer[0][j] = must(epoll_create1(EPOLL_CLOEXEC));
	fill("one layer", 0, bottom, MOST);
	return t_done();
}
