// An order's page shows what happens to it while it is open.
const order = document.getElementById('order');
if (order) {
  new EventSource(order.dataset.events).onmessage = ({ data }) => {
    const { seen, html } = JSON.parse(data);
    // The first message is mostly what the page shows already.
    if (String(seen) === order.dataset.seen) return;
    order.dataset.seen = seen;
    order.innerHTML = html;
  };
}
